// Values of attributes as people read them.
#pragma once

#include <string>

#include "lockstep/core/hdf5.h"

namespace lockstep::hdf5 {

// The shortest text that reads back as the same value; lists as "1e-06, 1e-09".
std::string to_text(const AttributeValue& value);

}  // namespace lockstep::hdf5
