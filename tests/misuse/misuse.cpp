// What does not compile, and must say why in our words (tests/CMakeLists.txt has them); and, as case 0, what must
// compile without a warning.
#include "lockstep/nn/compile.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/gradient.h"

using namespace lockstep;

int main() {
#if CASE == 0
  const auto nothing = ode::function<0>("nothing", [](auto, const auto&, const auto&, auto&) {});
  const auto zero = ode::event_function<2>("zero", [](auto, const auto& u, const auto&) { return u[0]; });
  const MatrixView<float> written;
  const MatrixView<const float> read = written;
  const ode::Options options{.rtol = 1e-8, .precision = Precision::f64, .threads = 1};
  const ode::SquaredError loss{.targets = {1, 2}};
  return static_cast<int>(nothing->outputs() + zero->outputs() + read.rows + loss.targets.size()) + options.threads;
#elif CASE == 1
  nn::compile<int>(nn::load("net.safetensors"));
#elif CASE == 2
  nn::NetPlan<long double>::compile(nn::load("net.safetensors"));
#elif CASE == 3
  nn::compile_derivatives<int>(nn::load("net.safetensors"));
#elif CASE == 4
  ode::event_function<2>("zero", [](auto, const auto& u, const auto&) { (void)u; });
#endif
}
