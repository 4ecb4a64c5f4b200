#include "lockstep/ode/detail/reverse_net.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/kernels/mlp/reverse.h"
#include "lockstep/ode/detail/guarded_tile.h"

namespace lockstep::ode::detail {
namespace {

template <class T>
class SampleNet final : public DifferentiableSample<T> {
 public:
  SampleNet(const TrainablePlan<T>& plan, std::size_t components, std::size_t parameters, bool with_time)
      : plan_(plan), components_(components), parameters_(parameters), with_time_(with_time) {}

  std::size_t inputs() const override { return plan_.inputs(); }
  std::size_t record_bytes() const override {
    return round_up_to_alignment(plan_.sample_activation_numbers() * sizeof(T));
  }
  std::size_t cotangent_bytes() const override {
    return round_up_to_alignment(plan_.sample_cotangent_numbers() * sizeof(T));
  }
  std::size_t workspace_bytes() const override { return gathered_bytes() + plan_.workspace_numbers() * sizeof(T); }

  void evaluate(double t, const T* in, const T* parameters, T* out, std::byte* record,
                std::byte* workspace) const override {
    if (plan_.inputs() != components_) {
      T* const inputs = reinterpret_cast<T*>(workspace);
      T* end = std::copy_n(in, components_, inputs);
      if (parameters_ != 0) end = std::copy_n(parameters, parameters_, end);
      if (with_time_) *end = static_cast<T>(t);
      in = inputs;
    }
    plan_.evaluate_sample(in, out, reinterpret_cast<T*>(record), reinterpret_cast<T*>(workspace + gathered_bytes()));
  }
  void reverse(const std::byte* record, const T* out_bar, T* in_bar, std::byte* cotangents,
               std::byte* workspace) const override {
    plan_.reverse_sample(reinterpret_cast<const T*>(record), out_bar, in_bar, reinterpret_cast<T*>(cotangents),
                         reinterpret_cast<T*>(workspace));
  }

  std::size_t sum_size() const override { return plan_.sample_gradient_numbers(); }
  void accumulate(std::span<const RecordedEvaluation> evaluations, T* sum) const override {
    constexpr std::size_t kAtOnce = 64;
    RecordedSample<T> samples[kAtOnce];
    while (!evaluations.empty()) {
      const std::size_t count = std::min(kAtOnce, evaluations.size());
      for (std::size_t i = 0; i < count; ++i) {
        samples[i] = {reinterpret_cast<const T*>(evaluations[i].record),
                      reinterpret_cast<const T*>(evaluations[i].cotangents)};
      }
      plan_.accumulate_samples({samples, count}, sum);
      evaluations = evaluations.subspan(count);
    }
  }
  void add_gradient(const T* sum, T* gradient) const override { plan_.add_sample_gradient(sum, gradient); }

 private:
  std::size_t gathered_bytes() const { return round_up_to_alignment(plan_.inputs() * sizeof(T)); }

  const TrainablePlan<T>& plan_;
  std::size_t components_;
  std::size_t parameters_;
  bool with_time_;
};

template <class T>
class ReverseNet final : public DifferentiableTile<T> {
 public:
  ReverseNet(TrainablePlan<T> plan, std::size_t components, std::size_t parameters, bool with_time)
      : plan_(std::move(plan)),
        components_(components),
        parameters_(parameters),
        with_time_(with_time),
        sample_(plan_, components, parameters, with_time) {}

  const DifferentiableSample<T>* sample() const override { return &sample_; }

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override { run(tile, nullptr, workspace); }
  void evaluate_recording(const TileView<T>& tile, std::byte* record, std::byte* workspace) const override {
    run(tile, reinterpret_cast<T*>(record), workspace);
  }
  std::size_t record_bytes() const override {
    return round_up_to_alignment(plan_.tile_activation_numbers() * sizeof(T));
  }
  std::size_t cotangent_bytes() const override {
    return round_up_to_alignment(plan_.tile_cotangent_numbers() * sizeof(T));
  }
  std::size_t workspace_bytes() const override {
    return (plan_.inputs() * kTileLanes + plan_.workspace_numbers()) * sizeof(T);
  }
  std::string description() const override {
    return "trainable net, " + std::to_string(plan_.parameter_count()) + " weights, " +
           std::string(to_string(plan_.cpu_target()));
  }

  void reverse(const ReverseTileView<T>& tile, std::byte* workspace) const override {
    T* const bar = reinterpret_cast<T*>(workspace);
    const bool whole = plan_.inputs() == components_;
    plan_.reverse_tile(reinterpret_cast<const T*>(tile.record), tile.out_bar, whole ? tile.in_bar : bar,
                       reinterpret_cast<T*>(tile.cotangents), tile.lanes, bar + plan_.inputs() * kTileLanes,
                       reinterpret_cast<const T*>(tile.next_record), whole ? InBar::add : InBar::set);
    if (whole) return;
    for (std::size_t i = 0; i < components_ * kTileLanes; ++i) tile.in_bar[i] += bar[i];
    const T* const rest = bar + components_ * kTileLanes;
    for (std::size_t i = 0; i < parameters_ * kTileLanes; ++i) tile.parameter_bar[i] += rest[i];
    if (!with_time_ || tile.time_bar == nullptr) return;
    for (std::size_t i = 0; i < kTileLanes; ++i) tile.time_bar[i] += rest[parameters_ * kTileLanes + i];
  }
  bool knows_time() const override { return true; }

  std::size_t weights() const override { return plan_.parameter_count(); }
  bool begins_with_own_weights() const override { return true; }
  void set_weights(std::span<const T> weights) override { plan_.set_parameters(weights); }
  void accumulate(std::span<const RecordedEvaluation> evaluations, T* gradient) const override {
    constexpr std::size_t kAtOnce = 64;
    RecordedTile<T> tiles[kAtOnce];
    while (!evaluations.empty()) {
      const std::size_t count = std::min(kAtOnce, evaluations.size());
      for (std::size_t i = 0; i < count; ++i) {
        tiles[i] = {reinterpret_cast<const T*>(evaluations[i].record),
                    reinterpret_cast<const T*>(evaluations[i].cotangents), evaluations[i].lanes,
                    reinterpret_cast<const T*>(evaluations[i].later)};
      }
      plan_.accumulate_tiles({tiles, count}, gradient);
      evaluations = evaluations.subspan(count);
    }
  }

 private:
  void run(const TileView<T>& tile, T* record, std::byte* workspace) const {
    T* const inputs = reinterpret_cast<T*>(workspace);
    T* const rest = inputs + plan_.inputs() * kTileLanes;
    TileView<T> view{tile.t, tile.in, nullptr, tile.out, tile.lanes};
    if (plan_.inputs() != components_) {
      T* row = std::copy_n(tile.in, components_ * kTileLanes, inputs);
      if (parameters_ != 0) row = std::copy_n(tile.parameters, parameters_ * kTileLanes, row);
      if (with_time_) std::copy_n(tile.t, kTileLanes, row);
      view.in = inputs;
    }
    plan_.evaluate_tile(view, record, rest);
  }

  TrainablePlan<T> plan_;
  std::size_t components_;
  std::size_t parameters_;
  bool with_time_;
  SampleNet<T> sample_;
};

}  // namespace

template <class T>
std::shared_ptr<DifferentiableTile<T>> reverse_net(const Mlp& mlp, std::size_t components, std::size_t parameters,
                                                   bool with_time, CpuTarget target) {
  return std::make_shared<ReverseNet<T>>(TrainablePlan<T>::compile(mlp, target), components, parameters, with_time);
}
template std::shared_ptr<DifferentiableTile<float>> reverse_net(const Mlp&, std::size_t, std::size_t, bool, CpuTarget);
template std::shared_ptr<DifferentiableTile<double>> reverse_net(const Mlp&, std::size_t, std::size_t, bool, CpuTarget);

}  // namespace lockstep::ode::detail
