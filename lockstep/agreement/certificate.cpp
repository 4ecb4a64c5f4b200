#include "lockstep/agreement/certificate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <unordered_map>

#include "lockstep/agreement/detail/rounded_nets.h"
#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/ode/solve.h"

namespace lockstep::agreement {
namespace {

constexpr const char* kMatrixPrecision = "matrix_precision";  // of the members, where it is not f32

template <class T>
double moved(double value, double largest, int ulps, bool up) {
  T x = static_cast<T>(value);
  const T towards = up ? std::numeric_limits<T>::infinity() : -std::numeric_limits<T>::infinity();
  if (x == 0) {
    // An ulp of zero is denormal: no perturbation at all beside the other components.
    const T scale = largest > 0 ? static_cast<T>(largest) : T{1};
    const T step = static_cast<T>(ulps) * std::numeric_limits<T>::epsilon() * scale;
    return static_cast<double>(up ? step : -step);
  }
  for (int i = 0; i < ulps; ++i) x = std::nextafter(x, towards);
  return static_cast<double>(x);
}

// One trajectory's initial state as member `member` starts from it.
void perturb(double* state, std::size_t components, std::size_t trajectory, std::size_t member, Precision precision,
             const CertificateOptions& which) {
  if (which.ulps == 0) return;
  double largest = 0;
  for (std::size_t c = 0; c < components; ++c) largest = std::max(largest, std::abs(state[c]));
  const Random random(which.seed, 0x43657274);  // a stream of its own
  for (std::size_t c = 0; c < components; ++c) {
    const std::uint64_t bits = random.bits(trajectory, static_cast<std::uint32_t>(member * components + c));
    const bool up = (bits >> 63) != 0;
    // Were all moved by as many, eight members of three components would start from five places, and +v and -v lead
    // equally far away.
    const int ulps = which.ulps + static_cast<int>((bits >> 16) % static_cast<std::uint64_t>(which.ulps));
    state[c] = precision == Precision::f32 ? moved<float>(state[c], largest, ulps, up)
                                           : moved<double>(state[c], largest, ulps, up);
  }
}

// The sampled trajectories, once for each of the members [first, last): [member][sample].
ode::Problem perturbed_problem(const ode::Problem& problem, Precision precision, const std::vector<std::size_t>& chosen,
                               const CertificateOptions& which, std::size_t first, std::size_t last) {
  const std::size_t components = problem.rhs->components();
  std::vector<std::size_t> rows;
  for (std::size_t member = first; member < last; ++member) rows.insert(rows.end(), chosen.begin(), chosen.end());
  ode::Problem result = problem.selection(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    perturb(result.initial_states.data() + i * components, components, which.first_trajectory + rows[i],
            first + i / chosen.size(), precision, which);
  }
  return result;
}

// Keeps the states of chosen trajectories and lets the others go.
class SampleSink : public ode::SolutionSink {
 public:
  SampleSink(const std::vector<std::size_t>& chosen, std::size_t row, Precision precision, std::size_t components,
             double* states)
      : chosen_(chosen), row_(row), components_(components), precision_(precision), states_(states) {}

  ode::SolutionBlock acquire(std::size_t first, std::size_t count) override {
    const std::lock_guard lock(mutex_);
    Block& block = blocks_[++last_];
    const std::size_t bytes = precision_ == Precision::f32 ? 4 : 8;
    block.state.resize(count * row_ * bytes);
    block.end_state.resize(count * components_ * bytes);
    block.records.resize(count);
    return {first, count, block.state.data(), block.end_state.data(), block.records.data(), last_};
  }

  void commit(const ode::SolutionBlock& block) override {
    const std::lock_guard lock(mutex_);
    for (auto i = std::ranges::lower_bound(chosen_, block.first); i != chosen_.end() && *i < block.first + block.count;
         ++i) {
      double* to = states_ + static_cast<std::size_t>(i - chosen_.begin()) * row_;
      const std::size_t from = (*i - block.first) * row_;
      if (precision_ == Precision::f32) {
        std::copy_n(static_cast<const float*>(block.state) + from, row_, to);
      } else {
        std::copy_n(static_cast<const double*>(block.state) + from, row_, to);
      }
    }
    blocks_.erase(block.token);
  }

 private:
  struct Block {
    std::vector<std::byte> state;
    std::vector<std::byte> end_state;
    std::vector<ode::TrajectoryRecord> records;
  };
  const std::vector<std::size_t>& chosen_;  // ascending
  std::size_t row_;
  std::size_t components_;
  Precision precision_;
  double* states_;  // [chosen][time][component]
  std::mutex mutex_;
  std::unordered_map<std::size_t, Block> blocks_;
  std::size_t last_ = 0;
};

void solve_into(const ode::Problem& problem, const ode::Options& options, const std::vector<std::size_t>& chosen,
                double* states, const RunControl& control) {
  const std::size_t components = problem.rhs->components();
  SampleSink sink(chosen, problem.save_points() * components, options.precision, components, states);
  if (ode::solve(problem, options, sink, control).cancelled) {
    throw Error(ErrorKind::cancelled, {"certificate", "a request to stop", {}, {}});
  }
}

// The number that the file's first row has in its ensemble.
std::int64_t first_trajectory(const hdf5::File& file) {
  constexpr const char* kName = ode::result_names::kFirstTrajectory;
  return file.has_attribute(kName) ? file.integer_attribute(kName) : 0;
}

}  // namespace

Certificate with_components(Certificate certificate, const std::vector<std::size_t>& components) {
  if (components.empty()) return certificate;
  const auto of_components = [&](const std::vector<double>& all) {
    std::vector<double> states;
    states.reserve(all.size() / certificate.components * components.size());
    for (std::size_t state = 0; state < all.size(); state += certificate.components) {
      for (const std::size_t component : components) states.push_back(all[state + component]);
    }
    return states;
  };
  certificate.states = of_components(certificate.states);
  certificate.base = of_components(certificate.base);
  certificate.components = components.size();
  return certificate;
}

std::vector<std::size_t> evenly_spaced(std::size_t trajectories, std::size_t samples) {
  samples = std::min(trajectories, samples);
  std::vector<std::size_t> chosen(samples);
  for (std::size_t i = 0; i < samples; ++i) chosen[i] = i * trajectories / samples;
  return chosen;
}

Certificate make_certificate(const ode::Problem& problem, const ode::Options& options, const CertificateOptions& which,
                             const RunControl& control) {
  const StandardArithmetic arithmetic;
  problem.validate();
  Certificate certificate;
  certificate.precision = options.precision;
  certificate.ulps = which.ulps;
  certificate.matrix_precision = coarser(options.matrix_precision, which.matrix_precision);
  certificate.members = which.members;
  certificate.save_points = problem.save_points();
  certificate.components = problem.rhs->components();
  const std::size_t all = which.ensemble_trajectories == 0 ? problem.trajectories() : which.ensemble_trajectories;
  for (const std::size_t i : which.chosen.empty() ? evenly_spaced(all, which.samples) : which.chosen) {
    if (i < which.first_trajectory || i - which.first_trajectory >= problem.trajectories()) continue;
    certificate.trajectories.push_back(i - which.first_trajectory);
  }
  const std::size_t row = certificate.save_points * certificate.components;
  const std::size_t samples = certificate.samples();
  certificate.states.resize(which.members * samples * row);
  if (samples == 0 || which.members == 0) return certificate;
  const bool own_weights = which.ulps > 0 && certificate.matrix_precision != MatrixPrecision::f32;
  const auto rhs_of = [&](std::size_t member) {
    return own_weights ? with_moved_weights(problem.rhs, certificate.matrix_precision, which.seed, member)
                       : problem.rhs;
  };
  if (options.control != ode::StepControl::common) {
    // All members in one solve, where they share one right-hand side.
    const std::size_t at_once = own_weights ? 1 : which.members;
    for (std::size_t member = 0; member < which.members; member += at_once) {
      ode::Problem perturbed =
          perturbed_problem(problem, options.precision, certificate.trajectories, which, member, member + at_once);
      perturbed.rhs = rhs_of(member);
      std::vector<std::size_t> every(perturbed.trajectories());
      std::iota(every.begin(), every.end(), std::size_t{0});
      solve_into(perturbed, options, every, certificate.states.data() + member * samples * row, control);
    }
    return certificate;
  }
  for (std::size_t member = 0; member < which.members; ++member) {
    ode::Problem perturbed = problem;
    perturbed.rhs = rhs_of(member);
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      perturb(perturbed.initial_states.data() + i * certificate.components, certificate.components, i, member,
              options.precision, which);
    }
    solve_into(perturbed, options, certificate.trajectories, certificate.states.data() + member * samples * row,
               control);
  }
  return certificate;
}

void write_certificate(hdf5::File& file, const Certificate& certificate) {
  const hdf5::Shape shape{certificate.members, certificate.samples(), certificate.save_points, certificate.components};
  hdf5::Dataset state = certificate.precision == Precision::f32 ? file.create_dataset<float>(kCertificateState, shape)
                                                                : file.create_dataset<double>(kCertificateState, shape);
  if (certificate.precision == Precision::f32) {
    const std::vector<float> narrow(certificate.states.begin(), certificate.states.end());
    state.write<float>(narrow);
  } else {
    state.write<double>(certificate.states);
  }
  state.set_attribute("long_name", "states of trajectories started some units in the last place away");
  state.set_attribute("ulps", certificate.ulps);
  if (certificate.matrix_precision != MatrixPrecision::f32)
    state.set_attribute(kMatrixPrecision, std::string(to_string(certificate.matrix_precision)));
  hdf5::Dataset trajectory =
      file.create_dataset<std::int64_t>(kCertificateTrajectory, hdf5::Shape{certificate.samples()});
  std::vector<std::int64_t> chosen(certificate.trajectories.begin(), certificate.trajectories.end());
  for (std::int64_t& i : chosen) i += first_trajectory(file);
  trajectory.write<std::int64_t>(chosen);
  trajectory.set_attribute("long_name", "trajectories of state that certificate_state perturbs");
  trajectory.make_scale(kCertificateTrajectory);
  hdf5::Dataset member = file.create_dataset<std::int64_t>(kCertificateMember, hdf5::Shape{certificate.members});
  std::vector<std::int64_t> members(certificate.members);
  std::iota(members.begin(), members.end(), 0);
  member.write<std::int64_t>(members);
  member.set_attribute("long_name", "perturbed copies of each sampled trajectory");
  member.make_scale(kCertificateMember);
  // xarray opens no file in which a dimension has no name.
  state.attach_scale(0, member);
  state.attach_scale(1, trajectory);
  namespace names = ode::result_names;
  const char* const times = file.has(names::kSavePoint) ? names::kSavePoint : names::kTime;
  if (file.has(times)) state.attach_scale(2, file.dataset(times));
  if (file.has(names::kComponent)) state.attach_scale(3, file.dataset(names::kComponent));
}

std::optional<Certificate> read_certificate(const std::filesystem::path& path) {
  const hdf5::File file = hdf5::File::open(path);
  if (!file.has(kCertificateState)) return std::nullopt;
  const hdf5::Dataset state = file.dataset(kCertificateState);
  const hdf5::Shape shape = state.shape();
  auto chosen = file.dataset(kCertificateTrajectory).read<std::int64_t>();
  if (chosen.empty()) return std::nullopt;
  for (std::int64_t& i : chosen) i -= first_trajectory(file);
  if (shape.size() != 4 || shape[1] != chosen.size() || !std::ranges::is_sorted(chosen) || chosen.front() < 0) {
    throw Error(ErrorKind::file,
                {state.name(), "a shape that does not fit " + std::string(kCertificateTrajectory),
                 "[member, sample, time, component], samples ascending", "solve again with --certificate"});
  }
  Certificate certificate;
  certificate.precision = state.type().bytes == 4 ? Precision::f32 : Precision::f64;
  if (state.has_attribute("ulps")) certificate.ulps = static_cast<int>(state.integer_attribute("ulps"));
  if (state.has_attribute(kMatrixPrecision)) {
    const std::string mode = state.string_attribute(kMatrixPrecision);
    const auto known = parse_matrix_precision(mode);
    if (!known) {
      throw Error(ErrorKind::file, {state.name() + ": attribute " + kMatrixPrecision, "\"" + mode + "\"",
                                    "f32, tf32, bf16 or fp16", "solve again with --certificate"});
    }
    certificate.matrix_precision = *known;
  }
  certificate.members = shape[0];
  certificate.save_points = shape[2];
  certificate.components = shape[3];
  certificate.trajectories.assign(chosen.begin(), chosen.end());
  certificate.states = state.read<double>();
  return certificate;
}

}  // namespace lockstep::agreement
