// The nets that equations call.
#include <utility>

#include "lockstep/cli/equations_section.h"
#include "lockstep/cli/model_text.h"

namespace lockstep::cli {

nn::Equations load_nets(const EquationsSection& section) {
  nn::Equations system = section.system;
  for (const EquationsSection::NetFile& net : section.nets) {
    try {
      system.nets.push_back({net.name, net.loaded ? *net.loaded : load_model(net.path, std::nullopt)});
    } catch (const Error& error) {
      throw Error(error.kind(), {net.where + (error.field().empty() ? "" : ": " + error.field()), error.found(),
                                 error.expected(), error.remedy()});
    }
  }
  return system;
}

}  // namespace lockstep::cli
