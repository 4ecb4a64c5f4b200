// Whether this program was linked with -static. Such a one may not open a shared library of ours, which would bring the
// C++ runtime a second time, beside the program's own: it ends in "double free or corruption".
#pragma once

namespace lockstep {

bool program_is_static();

}  // namespace lockstep
