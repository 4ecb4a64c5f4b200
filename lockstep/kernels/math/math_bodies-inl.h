// Every template of the elementary functions, in order of need. Included inside a namespace that knows the lane type,
// with LOCKSTEP_LANE_FN defined; never directly by users (see math_hwy-inl.h and math.h).
#include "lockstep/kernels/math/polynomial-inl.h"
#include "lockstep/kernels/math/tanh-inl.h"
//
#include "lockstep/kernels/math/activation-inl.h"
