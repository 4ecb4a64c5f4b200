#include "lockstep/ode/trained_parameters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/kernels/math/math.h"
#include "lockstep/ode/detail/graph_knots.h"
#include "lockstep/ode/detail/knots_of_inner.h"
#include "lockstep/ode/detail/opened_parameters.h"
#include "lockstep/ode/detail/refuse.h"
#include "lockstep/ode/differentiable_tile.h"

namespace lockstep::ode {
namespace {

using detail::refuse;

// Where each of the inner right-hand side's parameters comes from: the trajectory's, or those that are trained.
struct Sources {
  struct Source {
    bool trained;
    std::size_t index;
  };
  Sources(std::size_t parameters, const std::vector<TrainedParameter>& trained) {
    std::size_t given = 0;
    for (std::size_t i = 0; i < parameters; ++i) {
      const auto found = std::ranges::find(trained, i, &TrainedParameter::parameter);
      const bool is_trained = found != trained.end();
      of.push_back({is_trained, is_trained ? static_cast<std::size_t>(found - trained.begin()) : given++});
    }
  }
  std::vector<Source> of;  // [parameter]
};

template <class T>
std::size_t row_bytes(std::size_t rows) {
  return rows * kTileLanes * sizeof(T);
}

// [parameter][lane], for the inner right-hand side.
template <class T>
void fill(const Sources& sources, const T* given, const std::vector<T>& values, T* rows) {
  for (const Sources::Source& source : sources.of) {
    if (source.trained) {
      std::fill_n(rows, kTileLanes, values[source.index]);
    } else {
      std::copy_n(given + source.index * kTileLanes, kTileLanes, rows);
    }
    rows += kTileLanes;
  }
}

template <class T>
class TrainedTile final : public TileFunction<T> {
 public:
  TrainedTile(std::shared_ptr<const TileFunction<T>> inner, Sources sources, std::vector<T> values)
      : inner_(std::move(inner)), sources_(std::move(sources)), values_(std::move(values)) {}

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override {
    T* const rows = reinterpret_cast<T*>(workspace);
    fill(sources_, tile.parameters, values_, rows);
    inner_->evaluate({tile.t, tile.in, rows, tile.out, tile.lanes}, workspace + row_bytes<T>(sources_.of.size()));
  }
  std::size_t workspace_bytes() const override { return row_bytes<T>(sources_.of.size()) + inner_->workspace_bytes(); }
  std::string description() const override { return inner_->description(); }

 private:
  std::shared_ptr<const TileFunction<T>> inner_;
  Sources sources_;
  std::vector<T> values_;
};

// Behind the inner cotangents lie those of the trained parameters, [trained][lane].
template <class T>
class ReverseTrained final : public DifferentiableTile<T> {
 public:
  ReverseTrained(std::shared_ptr<DifferentiableTile<T>> inner, Sources sources, std::vector<TrainedParameter> trained)
      : inner_(std::move(inner)),
        sources_(std::move(sources)),
        trained_(std::move(trained)),
        values_(trained_.size()),
        slopes_(trained_.size()) {
    for (std::size_t i = 0; i < trained_.size(); ++i) set(i, static_cast<T>(trained_[i].first()));
  }

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override {
    inner_->evaluate(filled(tile, workspace), workspace + rows_bytes());
  }
  std::size_t workspace_bytes() const override { return rows_bytes() + inner_->workspace_bytes(); }
  std::string description() const override { return inner_->description(); }

  void evaluate_recording(const TileView<T>& tile, std::byte* record, std::byte* workspace) const override {
    inner_->evaluate_recording(filled(tile, workspace), record, workspace + rows_bytes());
  }
  std::size_t record_bytes() const override { return inner_->record_bytes(); }
  std::size_t cotangent_bytes() const override { return inner_->cotangent_bytes() + row_bytes<T>(trained_.size()); }

  void reverse(const ReverseTileView<T>& tile, std::byte* workspace) const override {
    T* const rows = reinterpret_cast<T*>(workspace);
    T* const bars = rows + sources_.of.size() * kTileLanes;
    fill(sources_, tile.parameters, values_, rows);
    std::fill_n(bars, sources_.of.size() * kTileLanes, T(0));
    ReverseTileView<T> inner = tile;
    inner.parameters = rows;
    inner.parameter_bar = bars;
    inner_->reverse(inner, workspace + 2 * rows_bytes());
    const auto lanes = static_cast<std::size_t>(tile.lanes);
    T* const kept = reinterpret_cast<T*>(tile.cotangents + inner_->cotangent_bytes());
    for (std::size_t i = 0; i < sources_.of.size(); ++i) {
      const auto [is_trained, index] = sources_.of[i];
      const T* const bar = bars + i * kTileLanes;
      if (is_trained) {
        T* const to = kept + index * kTileLanes;
        std::fill(std::copy_n(bar, lanes, to), to + kTileLanes, T(0));
      } else {
        for (int lane = 0; lane < kTileLanes; ++lane) tile.parameter_bar[index * kTileLanes + lane] += bar[lane];
      }
    }
  }
  std::size_t reverse_workspace_bytes() const override { return 2 * rows_bytes() + inner_->reverse_workspace_bytes(); }

  bool knows_time() const override { return inner_->knows_time(); }
  std::size_t weights() const override { return inner_->weights() + trained_.size(); }
  void set_weights(std::span<const T> weights) override {
    inner_->set_weights(weights.first(inner_->weights()));
    for (std::size_t i = 0; i < trained_.size(); ++i) set(i, weights[inner_->weights() + i]);
  }
  // Lanes in a tree, evaluations one after another: however they come in calls, the same bits.
  void accumulate(std::span<const RecordedEvaluation> evaluations, T* gradient) const override {
    inner_->accumulate(evaluations, gradient);
    for (std::size_t i = 0; i < trained_.size(); ++i) {
      for (const RecordedEvaluation& evaluation : evaluations) {
        const T* const bar =
            reinterpret_cast<const T*>(evaluation.cotangents + inner_->cotangent_bytes()) + i * kTileLanes;
        T sums[kTileLanes];
        std::copy_n(bar, kTileLanes, sums);
        for (int half = kTileLanes / 2; half > 0; half /= 2) {
          for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
        }
        gradient[inner_->weights() + i] += slopes_[i] * sums[0];
      }
    }
  }

 private:
  std::size_t rows_bytes() const { return row_bytes<T>(sources_.of.size()); }
  TileView<T> filled(const TileView<T>& tile, std::byte* workspace) const {
    T* const rows = reinterpret_cast<T*>(workspace);
    fill(sources_, tile.parameters, values_, rows);
    return {tile.t, tile.in, rows, tile.out, tile.lanes};
  }
  void set(std::size_t i, T x) {
    values_[i] = trained_[i].value(x);
    slopes_[i] = trained_[i].slope(x);
  }

  std::shared_ptr<DifferentiableTile<T>> inner_;
  Sources sources_;
  std::vector<TrainedParameter> trained_;
  std::vector<T> values_, slopes_;  // [trained]
};

class Trained final : public detail::KnotsOfInner, public detail::WithTrained {
 public:
  Trained(Rhs rhs, std::vector<TrainedParameter> trained)
      : KnotsOfInner(std::move(rhs)), trained_(std::move(trained)), sources_(inner_->parameters(), trained_) {}

  std::size_t components() const override { return inner_->components(); }
  std::size_t parameters() const override { return inner_->parameters() - trained_.size(); }
  std::size_t outputs() const override { return inner_->outputs(); }
  const Rhs& untrained() const override { return inner_; }
  const std::vector<TrainedParameter>& trained() const override { return trained_; }
  std::string description() const override {
    return inner_->description() + ", " + std::to_string(trained_.size()) +
           (trained_.size() == 1 ? " parameter trained" : " parameters trained");
  }
  std::string digest() const override {
    ContentHash hash;
    hash.add("trained parameters").add(inner_->digest());
    for (const TrainedParameter& each : trained_) {
      const double numbers[] = {static_cast<double>(each.parameter), each.start};
      hash.add(std::span<const double>(numbers));
    }
    return hash.hex();
  }
  // Not those that a trained one moves: where it is in the end is not known here.
  std::vector<TimeKnot> time_knots(const TimeSpan& span, std::span<const double> parameters) const override {
    return inner_->time_knots(span, known(parameters));
  }
  KnotBounds knot_bounds(std::span<const double> parameters) const override {
    return inner_->knot_bounds(known(parameters));
  }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override { return lower<float>(target); }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return lower<double>(target);
  }
  std::vector<double> weights() const override {
    std::vector<double> weights = inner_->weights();
    for (const TrainedParameter& each : trained_) weights.push_back(each.first());
    return weights;
  }
  std::shared_ptr<DifferentiableTile<float>> differentiable_f32(CpuTarget target) const override {
    return differentiable(inner_->differentiable_f32(target));
  }
  std::shared_ptr<DifferentiableTile<double>> differentiable_f64(CpuTarget target) const override {
    return differentiable(inner_->differentiable_f64(target));
  }
  std::shared_ptr<DifferentiableTile<float>> directional_f32(CpuTarget target) const override {
    return differentiable(inner_->directional_f32(target));
  }
  std::shared_ptr<DifferentiableTile<double>> directional_f64(CpuTarget target) const override {
    return differentiable(inner_->directional_f64(target));
  }

 private:
  // The inner function's parameters, no number where they are trained; none of none.
  std::vector<double> known(std::span<const double> parameters) const {
    std::vector<double> all;
    if (parameters.empty()) return all;
    for (const auto& [is_trained, index] : sources_.of) {
      all.push_back(is_trained ? std::numeric_limits<double>::quiet_NaN() : parameters[index]);
    }
    return all;
  }
  template <class T>
  std::shared_ptr<const TileFunction<T>> lower(CpuTarget target) const {
    std::vector<T> values;
    for (const TrainedParameter& each : trained_) values.push_back(each.value(static_cast<T>(each.first())));
    return std::make_shared<TrainedTile<T>>(ode::lower<T>(*inner_, target), sources_, std::move(values));
  }
  template <class T>
  std::shared_ptr<DifferentiableTile<T>> differentiable(std::shared_ptr<DifferentiableTile<T>> inner) const {
    if (!inner) return nullptr;
    return std::make_shared<ReverseTrained<T>>(std::move(inner), sources_, trained_);
  }

  std::vector<TrainedParameter> trained_;
  Sources sources_;
};

}  // namespace

bool moves_a_jump(const StateFunction& rhs, std::size_t parameter) {
  if (!rhs.moves_knots()) return false;
  std::vector<double> any = detail::any_parameters(rhs.parameters());
  constexpr double kEver = std::numeric_limits<double>::infinity();
  const auto jumps = [&] { return std::ranges::count(rhs.time_knots({-kEver, kEver}, any), true, &TimeKnot::jumps); };
  const auto all = jumps();
  any[parameter] = std::numeric_limits<double>::quiet_NaN();
  return jumps() < all;
}

void TrainedParameter::validate(const std::string& where) const {
  const StandardArithmetic arithmetic;
  const auto require = [&](bool good, const char* field, double found, const char* expected) {
    if (!good) refuse(where + field, number_text(found), expected);
  };
  require(std::isfinite(start), ".start", start, "a finite number");
  if (law == ParameterLaw::positive) {
    require(start > 0, ".start", start, "a number above 0: a positive parameter never reaches it");
    if (scale) refuse(where + ".scale", number_text(*scale), "none beside the positive law, whose scale is the start");
  }
  if (scale) require(*scale > 0 && std::isfinite(*scale), ".scale", *scale, "a positive number");
  if (law != ParameterLaw::bounded) {
    for (const auto& [field, bound] : {std::pair{".min", min}, {".max", max}}) {
      if (bound) refuse(where + field, number_text(*bound), "none beside another law than the bounded one");
    }
    return;
  }
  if (scale) refuse(where + ".scale", number_text(*scale), "none beside bounds, which have one of their own");
  if (!min && !max) refuse(where, "a bounded law without bounds", "min, max or both");
  for (const auto& [field, bound] : {std::pair{".min", min}, {".max", max}}) {
    if (bound) require(std::isfinite(*bound), field, *bound, "a finite number");
  }
  if (min && max && !(*min < *max && std::isfinite(*max - *min))) {
    refuse(where + ".min", number_text(*min), "less than max, " + number_text(*max));
  }
  const std::string inside = min && max ? "between min and max, " + number_text(*min) + " and " + number_text(*max)
                             : min      ? "above min, " + number_text(*min)
                                        : "below max, " + number_text(*max);
  if ((min && !(start > *min)) || (max && !(start < *max))) {
    throw Error(ErrorKind::invalid_argument, {where + ".start", number_text(start), "a number " + inside,
                                              "a training cannot leave a bound itself: begin some way from it"});
  }
}

namespace {
double scale_of(const TrainedParameter& parameter) {
  return parameter.scale.value_or(parameter.start == 0 ? 1 : std::abs(parameter.start));
}
}  // namespace

// Where a bounded parameter p is at x, with its slope by x.
//
// Between two bounds the share s = (p - min) / (max - min) is a logistic function of x that begins at that of the
// start,
//   s / (1 - s) = e^x s0 / (1 - s0),  hence  s = s0 e^x / (1 - s0 + s0 e^x).
// By the chain rule ds/dx = s (1 - s), and dp/dx = (max - min) s (1 - s). Multiplied by e^-x above and below where x >
// 0, neither overflows, and 1 - s keeps its digits: p is reckoned from the nearer bound. With one bound the distance to
// it is multiplied by e^x, or e^-x below a max so that p grows with x:
//   p = min + (start - min) e^x,  dp/dx = p - min;   p = max - (max - start) e^-x,  dp/dx = max - p.
namespace {
template <class T>
struct Bounded {
  T value, slope;
};
template <class T>
Bounded<T> bounded(const TrainedParameter& of, T x) {
  const T e = math::exp(x > 0 && of.max ? -x : x);
  if (!of.max) {
    const T distance = static_cast<T>(of.start - *of.min) * e;
    return {static_cast<T>(*of.min) + distance, distance};
  }
  if (!of.min) {
    const T distance = static_cast<T>(*of.max - of.start) * (x > 0 ? e : math::exp(-x));
    return {static_cast<T>(*of.max) - distance, distance};
  }
  const double width = *of.max - *of.min;
  const T above = static_cast<T>((of.start - *of.min) / width), below = static_cast<T>((*of.max - of.start) / width);
  const T range = static_cast<T>(width);
  const T sum = x > 0 ? above + below * e : below + above * e;
  const T share = (x > 0 ? above : above * e) / sum, rest = (x > 0 ? below * e : below) / sum;
  return {share < rest ? static_cast<T>(*of.min) + range * share : static_cast<T>(*of.max) - range * rest,
          range * share * rest};
}
}  // namespace

double TrainedParameter::first() const { return law == ParameterLaw::linear ? start / scale_of(*this) : 0; }

template <class T>
T TrainedParameter::value(T x) const {
  const StandardArithmetic arithmetic;
  if (law == ParameterLaw::bounded) return bounded(*this, x).value;
  return law == ParameterLaw::positive ? static_cast<T>(start) * math::exp(x) : static_cast<T>(scale_of(*this)) * x;
}
template <class T>
T TrainedParameter::slope(T x) const {
  const StandardArithmetic arithmetic;
  if (law == ParameterLaw::bounded) return bounded(*this, x).slope;
  return law == ParameterLaw::positive ? value(x) : static_cast<T>(scale_of(*this));
}
template float TrainedParameter::value(float) const;
template double TrainedParameter::value(double) const;
template float TrainedParameter::slope(float) const;
template double TrainedParameter::slope(double) const;

Rhs train_parameters(Rhs rhs, std::vector<TrainedParameter> parameters) {
  const StandardArithmetic arithmetic;
  if (!rhs) refuse("rhs", "none", "a right-hand side");
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string where = "parameters[" + std::to_string(i) + "]";
    const std::size_t place = parameters[i].parameter;
    if (place >= rhs->parameters()) {
      refuse(where + ".parameter", std::to_string(place),
             "one of the " + std::to_string(rhs->parameters()) + " that " + rhs->description() + " has");
    }
    for (std::size_t before = 0; before < i; ++before) {
      if (parameters[before].parameter == place)
        refuse(where + ".parameter", std::to_string(place) + " again", "each once");
    }
    parameters[i].validate(where);
  }
  if (parameters.empty()) return rhs;
  return std::make_shared<Trained>(std::move(rhs), std::move(parameters));
}

std::vector<Reset> train_parameters(std::vector<Reset> resets, const std::vector<TrainedParameter>& parameters) {
  const StandardArithmetic arithmetic;
  for (Reset& reset : resets) {
    reset.function = train_parameters(std::move(reset.function), parameters);
    reset.state = train_parameters(std::move(reset.state), parameters);
  }
  return resets;
}

}  // namespace lockstep::ode
