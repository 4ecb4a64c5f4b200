#include "lockstep/agreement/detail/rounded_nets.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/ode/guard.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::agreement {
namespace {

// Below it fp16's numbers are multiples of 2^-24: their error is that of numbers as large as this.
double smallest_normal(MatrixPrecision mode) { return mode == MatrixPrecision::fp16 ? 0x1p-14 : 0; }

}  // namespace

std::string name_of(MatrixPrecision mode) {
  if (mode == MatrixPrecision::bf16) return "bfloat16";
  if (mode == MatrixPrecision::fp16) return "float16";
  return mode == MatrixPrecision::tf32 ? "TF32" : "full precision";
}

ode::Rhs with_moved_weights(const ode::Rhs& rhs, MatrixPrecision mode, std::uint64_t seed, std::size_t member) {
  const Random random(seed, 0x57656967);  // a stream of its own
  std::uint32_t draw = 0;
  ode::Rhs whole;
  for (const ode::FunctionPart& part : rhs->parts()) {
    ode::Rhs moved;
    if (const auto* system = std::get_if<ode::SystemPart>(&part.what)) {
      moved = ode::system(system->name);
    } else if (const auto* net = std::get_if<ode::NetPart>(&part.what)) {
      Mlp mlp = *net->mlp;
      for (DenseLayer& layer : mlp.layers) {
        for (double& weight : layer.weights) {
          const double most = 2 * factor_roundoff(mode) * std::max(std::abs(weight), smallest_normal(mode));
          weight += most * (2 * random.uniform(member, draw++) - 1);
        }
      }
      moved = ode::net(std::move(mlp), {.with_time = net->with_time});
      if (net->range.minimum != nullptr) moved = clamp_to_range(moved, {*net->range.minimum, *net->range.maximum});
    } else {
      whole = nullptr;
      break;
    }
    whole = whole ? ode::sum(whole, moved) : moved;
  }
  if (!whole) {
    throw Error(ErrorKind::unsupported, {"the certificate of " + name_of(mode), rhs->description(),
                                         "built-in systems and plain nets", "compare runs of matrix precision f32"});
  }
  return whole;
}

}  // namespace lockstep::agreement
