#include "lockstep/ode/jacobian_tile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "lockstep/ode/differentiable_tile.h"

namespace lockstep::ode {
namespace {

// Of a transposed derivative.
template <class T>
class RowByRow final : public JacobianTile<T> {
 public:
  RowByRow(const StateFunction& function, std::shared_ptr<const DifferentiableTile<T>> lowered)
      : function_(std::move(lowered)),
        components_(function.components()),
        parameters_(function.parameters()),
        layout_(LinearLayout::dense(components_)) {}

  void evaluate(const TileView<T>& tile, T* by_state, T* by_time, std::byte* workspace) const override;
  std::size_t workspace_bytes() const override;
  const LinearLayout& layout() const override { return layout_; }

 private:
  struct Workspace;
  Workspace lay_out(std::byte* workspace) const;
  void difference_by_time(const TileView<T>& tile, const Workspace& memory, T* by_time) const;

  std::shared_ptr<const DifferentiableTile<T>> function_;
  std::size_t components_, parameters_;
  LinearLayout layout_;
};

template <class T>
struct RowByRow<T>::Workspace {
  double* t;         // [lane]; with `in` and `parameters` of every lane, those in no use too: code of users reads them
  T* in;             // [component][lane]
  T* parameters;     // [parameter][lane]
  T* out;            // [component][lane]
  T* moved;          // [component][lane]
  T* out_bar;        // [component][lane]
  T* parameter_bar;  // [parameter][lane]
  double* moved_t;   // [lane]
  std::byte* record;
  std::byte* cotangents;
  std::byte* rest;
};

template <class T>
typename RowByRow<T>::Workspace RowByRow<T>::lay_out(std::byte* workspace) const {
  const auto take = [&workspace](std::size_t bytes) {
    workspace += bytes;
    return workspace - bytes;
  };
  const std::size_t row = kTileLanes * sizeof(T);
  Workspace memory;
  memory.t = reinterpret_cast<double*>(take(kTileLanes * sizeof(double)));
  memory.moved_t = reinterpret_cast<double*>(take(kTileLanes * sizeof(double)));
  memory.in = reinterpret_cast<T*>(take(components_ * row));
  memory.parameters = reinterpret_cast<T*>(take(parameters_ * row));
  memory.out = reinterpret_cast<T*>(take(components_ * row));
  memory.moved = reinterpret_cast<T*>(take(components_ * row));
  memory.out_bar = reinterpret_cast<T*>(take(components_ * row));
  memory.parameter_bar = reinterpret_cast<T*>(take(parameters_ * row));
  memory.record = take(function_->record_bytes());
  memory.cotangents = take(function_->cotangent_bytes());
  memory.rest = workspace;
  return memory;
}

template <class T>
std::size_t RowByRow<T>::workspace_bytes() const {
  return (4 * components_ + 2 * parameters_) * kTileLanes * sizeof(T) + 2 * kTileLanes * sizeof(double) +
         function_->record_bytes() + function_->cotangent_bytes() +
         std::max(function_->workspace_bytes(), function_->reverse_workspace_bytes());
}

template <class T>
void RowByRow<T>::evaluate(const TileView<T>& tile, T* by_state, T* by_time, std::byte* workspace) const {
  const Workspace memory = lay_out(workspace);
  const std::size_t numbers = components_ * kTileLanes;
  for (std::size_t lane = 0; lane < kTileLanes; ++lane) {
    const std::size_t from = std::min(lane, static_cast<std::size_t>(tile.lanes) - 1);
    const auto take = [&](const T* rows, std::size_t count, T* to) {
      for (std::size_t at = 0; at < count * kTileLanes; at += kTileLanes) to[at + lane] = rows[at + from];
    };
    memory.t[lane] = tile.t[from];
    take(tile.in, components_, memory.in);
    take(tile.parameters, parameters_, memory.parameters);
  }
  const T* const parameters = parameters_ == 0 ? nullptr : memory.parameters;
  const TileView<T> whole{memory.t, memory.in, parameters, memory.out, tile.lanes};
  std::fill_n(by_state, components_ * numbers, T(0));
  std::fill_n(by_time, numbers, T(0));
  std::fill_n(memory.parameter_bar, parameters_ * kTileLanes, T(0));
  std::fill_n(memory.out_bar, numbers, T(0));
  function_->evaluate_recording(whole, memory.record, memory.rest);
  for (std::size_t row = 0; row < components_; ++row) {
    std::fill_n(memory.out_bar + row * kTileLanes, kTileLanes, T(1));
    function_->reverse({.t = memory.t,
                        .in = memory.in,
                        .parameters = parameters,
                        .out_bar = memory.out_bar,
                        .in_bar = by_state + row * numbers,
                        .parameter_bar = parameters_ == 0 ? nullptr : memory.parameter_bar,
                        .record = memory.record,
                        .cotangents = memory.cotangents,
                        .time_bar = by_time + row * kTileLanes,
                        .lanes = tile.lanes},
                       memory.rest);
    std::fill_n(memory.out_bar + row * kTileLanes, kTileLanes, T(0));
  }
  if (!function_->knows_time()) difference_by_time(whole, memory, by_time);
}

// Over an interval as in the code RODAS of Hairer & Wanner II, IV.7.
template <class T>
void RowByRow<T>::difference_by_time(const TileView<T>& tile, const Workspace& memory, T* by_time) const {
  for (std::size_t lane = 0; lane < kTileLanes; ++lane) {
    const double rounding = std::numeric_limits<T>::epsilon() / 2;
    memory.moved_t[lane] = tile.t[lane] + std::sqrt(rounding * std::max(1e-5, std::fabs(tile.t[lane])));
  }
  function_->evaluate({memory.moved_t, tile.in, tile.parameters, memory.moved, tile.lanes}, memory.rest);
  for (std::size_t at = 0; at < components_ * kTileLanes; ++at) {
    const double interval = memory.moved_t[at % kTileLanes] - tile.t[at % kTileLanes];
    by_time[at] = (memory.moved[at] - memory.out[at]) / static_cast<T>(interval);
  }
}

}  // namespace

template <class T>
std::shared_ptr<const JacobianTile<T>> lower_jacobian(const StateFunction& function, CpuTarget target,
                                                      std::shared_ptr<const DifferentiableTile<T>> lowered) {
  std::shared_ptr<const JacobianTile<T>> own;
  if constexpr (std::is_same_v<T, float>) {
    own = function.jacobian_f32(target);
  } else {
    own = function.jacobian_f64(target);
  }
  if (own) return own;
  if (!lowered) lowered = lower_differentiable<T>(function, target);
  return std::make_shared<RowByRow<T>>(function, std::move(lowered));
}

template std::shared_ptr<const JacobianTile<float>> lower_jacobian(const StateFunction&, CpuTarget,
                                                                   std::shared_ptr<const DifferentiableTile<float>>);
template std::shared_ptr<const JacobianTile<double>> lower_jacobian(const StateFunction&, CpuTarget,
                                                                    std::shared_ptr<const DifferentiableTile<double>>);

}  // namespace lockstep::ode
