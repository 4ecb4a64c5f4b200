// The graph kernels of one instruction set. Include after lane/targets.h and hwy/foreach_target.h, outside any
// namespace.
#if defined(LOCKSTEP_KERNELS_GRAPH_KERNELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_KERNELS_GRAPH_KERNELS_INL_H_
#undef LOCKSTEP_KERNELS_GRAPH_KERNELS_INL_H_
#else
#define LOCKSTEP_KERNELS_GRAPH_KERNELS_INL_H_
#endif

#include "lockstep/kernels/graph/detail/program.h"
#include "lockstep/kernels/lane/lane_group-inl.h"
#include "lockstep/kernels/math/math_hwy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace graph_kernels {

using graph::BinaryKind;
using graph::Kernels;
using graph::Operand;
using graph::ReduceKind;
using graph::SoftmaxKind;
using graph::Step;
using graph::Tile;
using graph::UnaryKind;

template <class T>
using Register = hn::ScalableTag<T>;

#define LOCKSTEP_LANE_FN HWY_INLINE
#include "lockstep/kernels/graph/detail/lane_operations-inl.h"
#undef LOCKSTEP_LANE_FN
#include "lockstep/kernels/graph/detail/tile_operations-inl.h"
//
#include "lockstep/kernels/graph/detail/sample_operations-inl.h"

template <class T, BinaryKind kKind>
constexpr std::array<graph::StepFunction<T>, 3> binaries() {
  return {binary<T, kKind, 0>, binary<T, kKind, 1>, binary<T, kKind, 2>};
}

template <class T, BinaryKind kFirst, BinaryKind kSecond>
constexpr std::array<graph::StepFunction<T>, 2> pair_of() {
  return {paired_rows<T, kFirst, kSecond, false>, paired_rows<T, kFirst, kSecond, true>};
}

template <class T, BinaryKind kFirst>
constexpr std::array<std::array<graph::StepFunction<T>, 2>, 3> pairs() {
  return {pair_of<T, kFirst, BinaryKind::add>(), pair_of<T, kFirst, BinaryKind::subtract>(),
          pair_of<T, kFirst, BinaryKind::multiply>()};
}

template <class T, size_t... kKind>
constexpr std::array<graph::StepFunction<T>, sizeof...(kKind)> chains(std::index_sequence<kKind...>) {
  return {chain<T, static_cast<ActivationKind>(kKind)>...};
}

template <class T>
const Kernels<T>* kernel_table() {
  using U = UnaryKind;
  using B = BinaryKind;
  static constexpr Kernels<T> table = {
      .unary = {unary<T, U::square_root>, unary<T, U::exp>, unary<T, U::log>, unary<T, U::absolute>,
                unary<T, U::negate>, unary<T, U::reciprocal>, unary<T, U::erf>, unary<T, U::cosine>, unary<T, U::floor>,
                unary<T, U::round>, unary<T, U::arctangent>},
      .binary = {binaries<T, B::add>(), binaries<T, B::subtract>(), binaries<T, B::multiply>(),
                 binaries<T, B::divide>(), binaries<T, B::minimum>(), binaries<T, B::maximum>(),
                 binaries<T, B::power>(), binaries<T, B::less>(), binaries<T, B::less_or_equal>(),
                 binaries<T, B::equal>(), binaries<T, B::modulo>()},
      .whole_rows = {whole_rows<T, B::add>, whole_rows<T, B::subtract>, whole_rows<T, B::multiply>,
                     whole_rows<T, B::divide>, whole_rows<T, B::minimum>, whole_rows<T, B::maximum>},
      .paired_rows = {pairs<T, B::add>(), pairs<T, B::subtract>(), pairs<T, B::multiply>()},
      .softmax = {softmax<T, SoftmaxKind::plain>, softmax<T, SoftmaxKind::logarithm>},
      .reduce = {reduce<T, ReduceKind::sum>, reduce<T, ReduceKind::mean>, reduce<T, ReduceKind::minimum>,
                 reduce<T, ReduceKind::maximum>},
      .standardise = standardise<T>,
      .rescale = rescale<T>,
      .clip = clip<T>,
      .dead_zone = dead_zone<T>,
      .layer_normalise = layer_normalise<T>,
      .interpolate = interpolate<T>,
      .choose = choose<T>,
      .select = select<T>,
      .columns = columns<T>,
      .copy = copy<T>,
      .fill = fill<T>,
      .activate = activate_rows<T>,
      .chain = chains<T>(std::make_index_sequence<18>()),
      .by_sample = sample_kernels<T>(),
  };
  return &table;
}

}  // namespace graph_kernels
}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // include guard a target
