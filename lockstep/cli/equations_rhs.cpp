// Equations of a problem file, with the nets that they call.
#include <utility>

#include "lockstep/cli/equations_section.h"
#include "lockstep/cli/model_text.h"

namespace lockstep::cli {

nn::Model load_equations(const EquationsSection& section) {
  nn::Equations system = section.system;
  for (const EquationsSection::NetFile& net : section.nets) {
    try {
      system.nets.push_back({net.name, load_model(net.path, std::nullopt)});
    } catch (const Error& error) {
      throw Error(error.kind(), {net.where + (error.field().empty() ? "" : ": " + error.field()), error.found(),
                                 error.expected(), error.remedy()});
    }
  }
  nn::Model model = nn::equations(system);
  model.name = "equations";
  return model;
}

}  // namespace lockstep::cli
