// The nets and tables that equations call.
#include <utility>

#include "lockstep/cli/equations_section.h"
#include "lockstep/cli/model_text.h"

namespace lockstep::cli {

nn::Equations load_nets(const EquationsSection& section) {
  nn::Equations system = section.system;
  const auto add = [&system](const auto& given, const auto& load) {
    try {
      system.nets.push_back({given.name, load()});
    } catch (const Error& error) {
      const bool named = error.field().empty() || error.field() == given.where;
      throw Error(error.kind(),
                  {given.where + (named ? "" : ": " + error.field()), error.found(), error.expected(), error.remedy()});
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
