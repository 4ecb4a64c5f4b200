// The way back through stages that a linearly implicit method solves for, as docs/adjoint.md derives it.
#include <algorithm>
#include <span>
#include <vector>

#include "lockstep/ode/cpu/adjoint_tile.h"

namespace lockstep::ode::cpu {
namespace {

// Numbers to which a sweep adds. Infinite entries of J counted as 0 in the step, and so do their derivatives: where the
// sweep adds what is not finite nothing is added. Of the first `lanes` lanes: others hold what nobody reads.
template <class T>
class FiniteSums {
 public:
  explicit FiniteSums(std::span<T> sums) : sums_(sums), before_(sums.begin(), sums.end()) {}
  void drop_what_is_not_finite(int lanes) const {
    for (std::size_t row = 0; row < sums_.size(); row += kTileLanes) {
      for (std::size_t at = row; at < row + static_cast<std::size_t>(lanes); ++at)
        sums_[at] = sums_[at] * 0 == 0 ? sums_[at] : before_[at];
    }
  }

 private:
  std::span<T> sums_;
  std::vector<T> before_;
};

}  // namespace

// The factors that the step's stages were solved with.
template <class T>
void AdjointTile<T>::linearise(const TileStep& step, const StageRecord<T>& record) {
  for (int lane = 0; lane < kept_lanes(); ++lane) {
    const double t = step.t[lane];
    t_linear_[lane] = has_stops() ? detail::step_end(tile_.stops[lane], t, step.h[lane] < 0).behind : t;
  }
  std::fill_n(t_linear_ + kept_lanes_, kTileLanes - kept_lanes_, t_linear_[kept_lanes_ - 1]);
  context_.jacobian->evaluate(
      {t_linear_, spread(record.arguments.data()), tile_.parameters.data(), nullptr, bar_.lanes}, linear_->matrix,
      linear_->by_time, workspace_.data());
  adjoint_.factor(*linear_, context_.tableau.inverse_gamma, bar_.h, bar_.lanes);
}

// What the stage's equations are derived along: the state y0, then k_i and d_i.
template <class T>
const T* AdjointTile<T>::direction_of(std::size_t stage, const StageRecord<T>& record) {
  const std::size_t size = context_.components() * kTileLanes;
  T* to = std::copy_n(spread(record.arguments.data()), size, direction_.data());
  const std::size_t before = (stage - 1) * context_.components() * kept_lanes_;
  to = std::copy_n(spread(record.slopes.data() + before), size, to);
  std::fill_n(to, kTileLanes, context_.tableau.time_weights[stage]);
  return direction_.data();
}

// W k_i = f_i + sum_j g_ij k_j + d_i h f_t, W = 1/gamma - h J. With v = W^-T k_i_bar, which takes the place of k_i_bar:
//   f_i_bar = v,   k_j_bar += g_ij v,   J_bar = h v k_i^T,   f_t_bar = h d_i v,
// the last two being those of h v^T (J k_i + d_i f_t), the derivative along (k_i, d_i) at y0.
template <class T>
void AdjointTile<T>::reverse_solution(std::size_t stage, const StageRecord<T>& record) {
  const std::size_t n = context_.components();
  T* const v = bar_.k.data() + stage * n * kTileLanes;
  adjoint_.solve_transposed(*linear_, v, bar_.lanes);
  adjoint_.spread(bar_, n, context_.tableau.couplings[stage], v);
  if (stage == 1) adjoint_.spread(bar_, n, StageSum<T>{{{0, T(1)}}}, v);
  adjoint_.scale(bar_.h, n, v, bar_.saved.data(), bar_.lanes);
  const bool has_parameters = context_.parameters() != 0;
  std::byte* const cotangents =
      directional_cotangents_.data() + pending_directional_.size() * directional_->cotangent_bytes();
  const FiniteSums<T> state_sums(bar_.y.span()), parameter_sums(parameter_bar_.span());
  directional_->reverse({.t = t_linear_,
                         .in = direction_of(stage, record),
                         .parameters = has_parameters ? tile_.parameters.data() : nullptr,
                         .out_bar = bar_.saved.data(),
                         .in_bar = bar_.y.data(),
                         .parameter_bar = has_parameters ? parameter_bar_.data() : nullptr,
                         .record = nullptr,
                         .cotangents = cotangents,
                         .lanes = bar_.lanes},
                        workspace_.data());
  state_sums.drop_what_is_not_finite(bar_.lanes);
  parameter_sums.drop_what_is_not_finite(bar_.lanes);
  pending_directional_.push_back({.record = nullptr, .cotangents = cotangents, .lanes = bar_.lanes});
}

template void AdjointTile<float>::linearise(const TileStep&, const StageRecord<float>&);
template const float* AdjointTile<float>::direction_of(std::size_t, const StageRecord<float>&);
template void AdjointTile<float>::reverse_solution(std::size_t, const StageRecord<float>&);
template void AdjointTile<double>::linearise(const TileStep&, const StageRecord<double>&);
template const double* AdjointTile<double>::direction_of(std::size_t, const StageRecord<double>&);
template void AdjointTile<double>::reverse_solution(std::size_t, const StageRecord<double>&);

}  // namespace lockstep::ode::cpu
