// Every template of the elementary functions, in order of need. Included inside a namespace that knows the lane type,
// with LOCKSTEP_LANE_FN defined; never directly by users (see math_hwy-inl.h and math.h).
// Each file uses those before it.
// clang-format off

#include "lockstep/kernels/math/polynomial-inl.h"
#include "lockstep/kernels/math/exp-inl.h"
#include "lockstep/kernels/math/log-inl.h"
#include "lockstep/kernels/math/pow-inl.h"
#include "lockstep/kernels/math/modulo-inl.h"
#include "lockstep/kernels/math/tanh-inl.h"
#include "lockstep/kernels/math/trig-inl.h"
#include "lockstep/kernels/math/atan-inl.h"
#include "lockstep/kernels/math/logistic-inl.h"
#include "lockstep/kernels/math/erf-inl.h"
#include "lockstep/kernels/math/logistic_derivative-inl.h"
#include "lockstep/kernels/math/activation-inl.h"
