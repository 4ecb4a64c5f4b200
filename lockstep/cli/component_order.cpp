#include "lockstep/cli/component_order.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

// What a net's outputs may be called, by what each is: a component, or the derivative of one.
std::map<std::string, std::string> components_of_outputs(const std::vector<std::string>& components) {
  std::map<std::string, std::string> of;
  for (const std::string& component : components) {
    for (const std::string& name :
         {component, "d" + component, "d" + component + "_dt", "d" + component + "/dt", component + "_dot"}) {
      of.try_emplace(name, component);
    }
  }
  return of;
}

bool are_permuted(std::vector<std::string> names, std::vector<std::string> others) {
  std::ranges::sort(names);
  std::ranges::sort(others);
  return names == others;
}

void require_order(const char* what, const std::vector<std::string>& components,
                   const std::vector<std::string>& named_as, std::span<const nn::Feature> features,
                   const std::string& where, const std::filesystem::path& net) {
  if (named_as == components || !are_permuted(named_as, components)) return;
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
  const std::map<std::string, std::string> known = components_of_outputs(components);
  for (const nn::Feature& feature : outputs) {
    const auto component = known.find(feature.name);
    out.push_back(component == known.end() ? std::string() : component->second);  // empty: another name
  }
  require_order("input", components, in, inputs, where, net);
  require_order("output", components, out, outputs, where, net);
}

}  // namespace lockstep::cli
