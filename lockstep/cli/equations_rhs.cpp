// The nets and tables that equations call.
#include <string>
#include <utility>

#include "lockstep/cli/equations_section.h"
#include "lockstep/cli/model_text.h"

namespace lockstep::cli {

nn::Equations load_nets(const EquationsSection& section) {
  nn::Equations system = section.system;
  const auto add = [&system](const auto& given, const auto& load) {
    try {
      system.nets.push_back({given.name, load(), given.where});
    } catch (const Error& error) {
      const std::string& field = error.field();
      const std::string place =
          field.starts_with(given.where) ? field : given.where + (field.empty() ? "" : ": " + field);
      throw Error(error.kind(), {place, error.found(), error.expected(), error.remedy()});
    }
  };
  for (const EquationsSection::NetFile& net : section.nets) {
    add(net, [&net] { return net.loaded ? *net.loaded : load_model(net.path, std::nullopt); });
  }
  for (const TableSection& table : section.tables) {
    add(table, [&table] { return load_table(table); });
  }
  return system;
}

}  // namespace lockstep::cli
