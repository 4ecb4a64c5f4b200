#include "lockstep/nn/detail/activation_list.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/names.h"

namespace lockstep::nn::detail {
Activation known_activation(const std::string& name, const std::string& field, ErrorKind kind) {
  if (const auto activation = parse_activation(name)) return *activation;
  std::vector<std::string> names;
  for (const Activation& known : all_activations()) {
    names.push_back(to_string(known));
    if (known.kind == ActivationKind::identity) names.emplace_back("linear");  // as Keras and our pages call it
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const Error error = unknown_name(field, name, views);
  throw Error(kind, {error.field(), error.found(), error.expected(), error.remedy()});
}

std::vector<std::string> split_list(const std::string& text) {
  constexpr const char* kBlanks = " \t\r\n";
  std::vector<std::string> parts;
  if (text.find_first_not_of(kBlanks) == std::string::npos) return parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string part = text.substr(begin, end - begin);
    part.erase(part.find_last_not_of(kBlanks) + 1);
    part.erase(0, std::min(part.find_first_not_of(kBlanks), part.size()));
    parts.push_back(std::move(part));
    begin = end + 1;
  }
  return parts;
}

namespace {

// One for all layers but the last, which gets none.
std::vector<Activation> of_hidden_layers(std::size_t layers, Activation activation) {
  std::vector<Activation> activations(layers, activation);
  activations.back() = Activation{};
  return activations;
}

std::vector<Activation> parse_list(std::size_t layers, const std::string& text, const std::string& field,
                                   ErrorKind kind) {
  const std::vector<std::string> names = split_list(text);
  if (names.size() == 1 && layers > 1) return of_hidden_layers(layers, known_activation(names[0], field, kind));
  if (names.size() != layers) {
    throw Error(kind, {field, std::to_string(names.size()) + " names (" + text + ")",
                       std::to_string(layers) + ", one for each layer, or one name for the hidden layers", ""});
  }
  std::vector<Activation> activations;
  for (std::size_t i = 0; i < layers; ++i) {
    activations.push_back(known_activation(names[i], field + "[" + std::to_string(i) + "]", kind));
  }
  return activations;
}

const char* given_field(const ReadOptions& options) {
  return options.hidden_activation.empty() ? "options.activations" : "options.hidden_activation";
}

// What the reader says, one for each layer; none where it says nothing.
std::optional<std::vector<Activation>> given_activations(std::size_t layers, const ReadOptions& options) {
  if (!options.activations.empty() && !options.hidden_activation.empty()) {
    throw Error(ErrorKind::invalid_argument, {"options.activations", "\"" + options.activations + "\"",
                                              "none beside options.hidden_activation", "give one of the two"});
  }
  if (!options.hidden_activation.empty()) {
    return of_hidden_layers(
        layers, known_activation(options.hidden_activation, given_field(options), ErrorKind::invalid_argument));
  }
  if (split_list(options.activations).empty()) return std::nullopt;
  return parse_list(layers, options.activations, given_field(options), ErrorKind::invalid_argument);
}

void require_same(const std::vector<Activation>& given, const std::vector<Activation>& own, const ReadOptions& options,
                  const std::string& source) {
  if (given == own) return;
  const auto text = [](const std::vector<Activation>& activations) {
    std::string list;
    for (const Activation& activation : activations) list += (list.empty() ? "" : ",") + to_string(activation);
    return '"' + list + '"';
  };
  throw Error(ErrorKind::invalid_argument,
              {given_field(options), text(given), text(own) + ", the activations that " + source + " has of its own",
               "leave them out; they are for files that do not say"});
}

}  // namespace

std::vector<Activation> choose_activations(std::size_t layers, const std::string& in_file, const ReadOptions& options,
                                           const std::string& source) {
  const std::string field = source + ": activations";
  const std::optional<std::vector<Activation>> given = given_activations(layers, options);
  if (split_list(in_file).empty()) {
    if (given) return *given;
    throw Error(
        ErrorKind::model,
        {field, "none in the file", "one for each of the " + std::to_string(layers) + " layers",
         "give them when loading, one for each layer (tanh,linear) or one for the hidden layers (tanh), or write "
         "the file with metadata={\"activations\": \"tanh,linear\"}"});
  }
  std::vector<Activation> own = parse_list(layers, in_file, field, ErrorKind::model);
  if (given) require_same(*given, own, options, source);
  return own;
}

void require_agreement(const Model& model, const ReadOptions& options, const std::string& source) {
  if (options.activations.empty() && options.hidden_activation.empty()) return;
  if (!is_stack(model)) {
    const std::string& given = options.activations.empty() ? options.hidden_activation : options.activations;
    throw Error(ErrorKind::invalid_argument,
                {given_field(options), '"' + given + '"',
                 "none: " + source + " says its operations itself, and is no plain stack of layers", "leave them out"});
  }
  std::vector<Activation> own;
  for (const DenseLayer& layer : to_mlp(model).layers) own.push_back(layer.activation);
  if (const auto given = given_activations(own.size(), options)) require_same(*given, own, options, source);
}

}  // namespace lockstep::nn::detail
