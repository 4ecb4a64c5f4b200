// Operations of keras.ops that choose features or put them side by side: x[:, a:b], take, split, flip, concatenate,
// stack.
#include <algorithm>
#include <utility>

#include "lockstep/nn/detail/keras_operation_reader.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

bool takes_all(const Json& slice) {
  if (!is_of_class(slice, "__slice__") || !slice.contains("config") || !slice["config"].is_object()) return false;
  const auto is = [&](const char* key, int otherwise) {
    const auto found = slice["config"].find(key);
    return found == slice["config"].end() || found->is_null() || (otherwise >= 0 && *found == otherwise);
  };
  return is("start", 0) && is("stop", -1) && is("step", 1);
}

}  // namespace

// x[:, 2], x[:, :2], x[..., ::-1], and of x[:, 2] again x[:, None].
std::string KerasOperationReader::get_item() {
  constexpr const char* kSlices = "x[:, a:b] or x[:, i], of all samples";
  const Json key = call_.arguments.size() > 1 ? call_.arguments[1] : Json();
  std::vector<Json> axes;
  if (key.is_array()) {
    axes.assign(key.begin(), key.end());
  } else {
    axes.push_back(key);
  }
  if (!axes.empty() && is_of_class(axes[0], "__ellipsis__")) {  // all samples where the features are named after it
    if (axes.size() == 1) return x_;
    if (rank_ == 1 && !axes[1].is_null()) cannot("a choice of samples", kSlices);
    axes[0] = Json{{"class_name", "__slice__"}, {"config", Json::object()}};
  }
  if (axes.empty() || !takes_all(axes[0])) cannot("a choice of samples, " + key.dump().substr(0, 60), kSlices);
  if (axes.size() == 1) return x_;
  if (rank_ == 1 && axes.size() == 2 && axes[1].is_null()) return x_;
  if (rank_ == 1 || axes.size() > 2) cannot("more dimensions, " + key.dump().substr(0, 60), kSlices);
  const auto width = static_cast<std::int64_t>(graph_.width_of(x_, 0, layer_));
  if (axes[1].is_number_integer()) return columns({index_of(axes[1], width)}, name_);
  if (!is_of_class(axes[1], "__slice__") || !axes[1].contains("config") || !axes[1]["config"].is_object()) {
    cannot("the index " + axes[1].dump().substr(0, 60), kSlices);
  }
  return columns(sliced(axes[1]["config"], width), name_);
}

std::string KerasOperationReader::take() {
  require_features();
  require_axis();
  const auto width = static_cast<std::int64_t>(graph_.width_of(x_, 0, layer_));
  Json wanted = call_.arguments.size() > 1 ? call_.arguments[1] : Json();
  if (wanted.is_object() && wanted.contains("config") && wanted["config"].is_object() &&
      wanted["config"].contains("value")) {
    wanted = Json(wanted["config"]["value"]);
  }
  if (wanted.is_number_integer()) return columns({index_of(wanted, width)}, name_);
  if (!wanted.is_array()) cannot("the indices " + wanted.dump().substr(0, 60), "a list of whole numbers");
  std::vector<std::size_t> indices;
  for (const Json& one : wanted) indices.push_back(index_of(one, width));
  return columns(std::move(indices), name_);
}

KerasValues KerasOperationReader::split() {
  require_features();
  require_axis();
  const std::size_t width = graph_.width_of(x_, 0, layer_);
  const auto given = layer_.config.find("indices_or_sections");
  std::vector<std::size_t> ends;
  if (given != layer_.config.end() && given->is_number_unsigned()) {
    const auto sections = given->get<std::size_t>();
    if (sections == 0 || width % sections != 0) {
      refuse(graph_.where(layer_), std::to_string(sections) + " sections of " + std::to_string(width) + " features",
             "sections of one width");
    }
    for (std::size_t i = 1; i <= sections; ++i) ends.push_back(i * (width / sections));
  } else if (given != layer_.config.end() && given->is_array()) {
    for (const Json& one : *given) {
      const std::size_t end = index_of(one, static_cast<std::int64_t>(width));
      if (end <= (ends.empty() ? 0 : ends.back())) cannot("an empty section", "ascending indices");
      ends.push_back(end);
    }
    ends.push_back(width);
  } else {
    cannot("sections that are no numbers", "how many, or where each begins");
  }
  KerasValues parts;
  std::size_t first = 0;
  for (const std::size_t end : ends) {
    std::vector<std::size_t> indices;
    for (; first < end; ++first) indices.push_back(first);
    parts.push_back(columns(std::move(indices), part()));
  }
  return parts;
}

std::string KerasOperationReader::flip() {
  require_features();
  require_axis();
  std::vector<std::size_t> indices(graph_.width_of(x_, 0, layer_));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = indices.size() - 1 - i;
  return columns(std::move(indices), name_);
}

std::string KerasOperationReader::concatenate() {
  require_features();
  if (kind_ == "Concatenate") graph_.check_axis(layer_, false);
  if (call_.constants) cannot("numbers among what it joins", "values of other layers");
  return make(name_, Concatenate{}, reads_);
}

// Of values [batch], side by side.
std::string KerasOperationReader::stack() {
  graph_.check_axis(layer_, false);
  if (rank_ != 1 || call_.constants) cannot("a stack of [batch, features]", "values [batch], or concatenate()");
  return make(name_, Concatenate{}, reads_);
}

std::string KerasOperationReader::columns(std::vector<std::size_t> indices, const std::string& name) {
  if (indices.empty()) cannot("a choice of no features", "at least one");
  bool all = indices.size() == graph_.width_of(x_, 0, layer_);
  for (std::size_t i = 0; all && i < indices.size(); ++i) all = indices[i] == i;
  return all ? x_ : make(name, Columns{std::move(indices)}, {x_});
}

std::size_t KerasOperationReader::index_of(const Json& json, std::int64_t width) const {
  if (!json.is_number_integer()) cannot("the index " + json.dump().substr(0, 60), "a whole number");
  const auto index = json.get<std::int64_t>();
  if (index < -width || index >= width) {
    refuse(graph_.where(layer_), "feature " + std::to_string(index), "one of " + std::to_string(width));
  }
  return static_cast<std::size_t>(index < 0 ? index + width : index);
}

// As Python's slice.indices().
std::vector<std::size_t> KerasOperationReader::sliced(const Json& slice, std::int64_t width) const {
  const auto bound = [&](const char* key) -> std::optional<std::int64_t> {
    const auto found = slice.find(key);
    if (found == slice.end() || found->is_null()) return {};
    if (!found->is_number_integer()) cannot("a slice by " + found->dump().substr(0, 60), "whole numbers");
    return std::clamp<std::int64_t>(found->get<std::int64_t>(), -(std::int64_t{1} << 40), std::int64_t{1} << 40);
  };
  const std::int64_t step = bound("step").value_or(1);
  if (step == 0) refuse(graph_.where(layer_), "a slice of step 0", "another step");
  const std::int64_t least = step > 0 ? 0 : -1, most = step > 0 ? width : width - 1;
  const auto within = [&](std::optional<std::int64_t> given, std::int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + width : *given, least, most);
  };
  const std::int64_t start = within(bound("start"), step > 0 ? 0 : width - 1);
  const std::int64_t stop = within(bound("stop"), step > 0 ? width : -1);
  std::vector<std::size_t> indices;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
    indices.push_back(static_cast<std::size_t>(i));
  }
  return indices;
}

}  // namespace lockstep::nn::detail
