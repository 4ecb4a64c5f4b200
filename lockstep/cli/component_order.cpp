#include "lockstep/cli/component_order.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

// The component that a net's output is called as, or the derivative of; empty for another name.
std::string component_of(const std::string& name, const std::vector<std::string>& components) {
  for (const std::string& component : components) {
    const std::array<std::string, 5> forms{component, "d" + component, "d" + component + "_dt", "d" + component + "/dt",
                                           component + "_dot"};
    if (std::ranges::find(forms, name) != forms.end()) return component;
  }
  return {};
}

void require_order(const char* what, const std::vector<std::string>& components,
                   const std::vector<std::string>& named_as, std::span<const nn::Feature> features,
                   const std::string& where, const std::filesystem::path& net) {
  if (named_as == components || !std::ranges::is_permutation(named_as, components)) return;
  std::vector<std::string_view> names;
  for (const nn::Feature& feature : features) names.push_back(feature.name);
  const std::vector<std::string_view> wanted(components.begin(), components.end());
  refuse(where, std::string("the ") + what + "s " + list_text(names) + " of " + net.string(),
         "the order of the components, " + list_text(wanted) + ", as which it takes them",
         "call the net in equations, where each input and output has its place by name; or where its names are wrong, "
         "give it others: lockstep import --inputs or --outputs, in Python net.with_names()");
}

}  // namespace

void require_component_order(const std::vector<std::string>& components, std::span<const nn::Feature> inputs,
                             std::span<const nn::Feature> outputs, const std::string& where,
                             const std::filesystem::path& net) {
  std::vector<std::string> in, out;
  for (const nn::Feature& feature : inputs) in.push_back(feature.name);
  for (const nn::Feature& feature : outputs) out.push_back(component_of(feature.name, components));
  require_order("input", components, in, inputs, where, net);
  require_order("output", components, out, outputs, where, net);
}

}  // namespace lockstep::cli
