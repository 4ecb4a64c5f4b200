#include "lockstep/nn/detail/activation_list.h"

#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/names.h"

namespace lockstep::nn::detail {
Activation known_activation(const std::string& name, const std::string& field) {
  if (const auto activation = parse_activation(name)) return *activation;
  std::vector<std::string> names;
  for (const Activation& known : all_activations()) names.push_back(to_string(known));
  const std::vector<std::string_view> views(names.begin(), names.end());
  const Error error = unknown_name(field, name, views);
  throw Error(ErrorKind::model, {error.field(), error.found(), error.expected(), error.remedy()});
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

std::vector<Activation> choose_activations(std::size_t layers, const std::string& in_file, const ReadOptions& options,
                                           const std::string& source) {
  if (!options.activations.empty() && !options.hidden_activation.empty()) {
    throw Error(ErrorKind::invalid_argument, {"options.activations", "\"" + options.activations + "\"",
                                              "none beside options.hidden_activation", "give one of the two"});
  }
  std::vector<Activation> activations;
  if (!options.hidden_activation.empty()) {
    activations.assign(layers, known_activation(options.hidden_activation, "options.hidden_activation"));
    activations.back() = Activation{};
    return activations;
  }
  const bool from_options = !options.activations.empty();
  const std::string field = from_options ? "options.activations" : source + ": activations";
  const std::vector<std::string> names = split_list(from_options ? options.activations : in_file);
  if (names.empty()) {
    throw Error(ErrorKind::model,
                {field, "none in the file", "one for each of the " + std::to_string(layers) + " layers",
                 "give a hidden activation or a list when loading (tanh, or tanh,linear), or write the file with "
                 "metadata={\"activations\": \"tanh,linear\"}"});
  }
  if (names.size() != layers) {
    throw Error(
        ErrorKind::model,
        {field, std::to_string(names.size()) + " names (" + (from_options ? options.activations : in_file) + ")",
         std::to_string(layers) + ", one for each layer", ""});
  }
  for (std::size_t i = 0; i < layers; ++i) {
    activations.push_back(known_activation(names[i], field + "[" + std::to_string(i) + "]"));
  }
  return activations;
}

}  // namespace lockstep::nn::detail
