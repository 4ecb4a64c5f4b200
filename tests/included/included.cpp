// Compiled with the warnings of this project, all of them errors.
#include <cstdio>

#include "lockstep/nn/compile.h"
#include "lockstep/nn/equations.h"
#include "lockstep/nn/fit.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/net_derivatives.h"
#include "lockstep/nn/net_plan.h"

int main() {
  const auto plan = lockstep::nn::compile<float>(lockstep::nn::load("net.safetensors"));
  std::printf("%zu\n", plan.workspace_bytes());
}
