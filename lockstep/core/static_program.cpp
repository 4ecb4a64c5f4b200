#include "lockstep/core/static_program.h"

#include <link.h>

#include <cstddef>

namespace lockstep {

bool program_is_static() {
  // The program itself comes first; one that opens libraries names the linker to start it with.
  bool dynamic = false;
  dl_iterate_phdr(
      [](dl_phdr_info* program, std::size_t, void* found) {
        for (int i = 0; i < program->dlpi_phnum; ++i)
          if (program->dlpi_phdr[i].p_type == PT_INTERP) *static_cast<bool*>(found) = true;
        return 1;
      },
      &dynamic);
  return !dynamic;
}

}  // namespace lockstep
