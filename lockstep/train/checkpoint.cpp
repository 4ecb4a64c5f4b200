#include "lockstep/train/checkpoint.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/core/precision.h"
#include "lockstep/core/standard_arithmetic.h"

namespace lockstep::train {
namespace {

constexpr const char* kFormatAttribute = "lockstep_training";
constexpr std::int64_t kFormat = 4;

[[noreturn]] void refuse_checkpoint(const std::string& field, const std::string& found, const std::string& expected,
                                    const std::string& remedy) {
  throw Error(ErrorKind::file, {field, found, expected, remedy});
}

// Everything in a fixed order, so that one list serves writing, reading and the digest.
template <class T, class State, class Visitor>
void visit_numbers(State& state, Visitor&& visit) {
  visit("parameters", state.parameters);
  visit("optimiser_first", state.optimiser.first);
  visit("optimiser_second", state.optimiser.second);
  visit("best_parameters", state.best);
  visit("earlier_best_parameters", state.earlier_best);
  visit("lbfgs_gradient", state.lbfgs.gradient);
}

template <class State, class Visitor>
void visit_scalars(State& state, Visitor&& visit) {
  visit("optimiser_beta1_power", state.optimiser.beta1_power);
  visit("optimiser_beta2_power", state.optimiser.beta2_power);
  visit("plateau_best", state.plateau.best);
  visit("plateau_scale", state.plateau.scale);
  visit("best_loss", state.best_loss);
  visit("earlier_best_loss", state.earlier_best_loss);
  visit("watched_loss", state.watched);
  visit("lbfgs_loss", state.lbfgs.loss);
}

template <class State, class Visitor>
void visit_counts(State& state, Visitor&& visit) {
  visit("phase", state.place.phase);
  visit("phase_iteration", state.place.iteration);
  visit("iteration", state.place.total);
  visit("optimiser_steps", state.optimiser.steps);
  visit("plateau_since_best", state.plateau.since_best);
  visit("best_at", state.best_at);
  visit("best_left_out", state.best_left_out);
  visit("earlier_best_left_out", state.earlier_best_left_out);
  visit("left_out", state.left_out);
  visit("by_squares", state.by_squares);
}

// Guards against damage: HDF5 has no checksum of its own here.
template <class T>
std::string digest(const Checkpoint<T>& checkpoint) {
  ContentHash hash;
  visit_numbers<T>(checkpoint.state, [&](const char*, const std::vector<T>& v) { hash.add(std::span<const T>(v)); });
  visit_scalars(checkpoint.state, [&](const char*, const double& x) { hash.add(std::span<const double>(&x, 1)); });
  visit_counts(checkpoint.state, [&](const char*, const auto& n) { hash.add(std::to_string(n)); });
  for (const LbfgsPair<T>& pair : checkpoint.state.lbfgs.pairs) {
    hash.add(std::span<const T>(pair.step)).add(std::span<const T>(pair.change));
    hash.add(std::span<const double>(&pair.inverse_curvature, 1));
  }
  for (const CurvePoint& point : checkpoint.curve) {
    const double numbers[] = {point.loss, point.watched, point.gradient_norm, point.learning_rate};
    const std::int64_t counts[] = {point.iteration, point.phase};
    hash.add(std::span<const double>(numbers)).add(std::span<const std::int64_t>(counts));
  }
  return hash.hex();
}

constexpr std::uintmax_t kCheckpointOverhead = 16'384;  // of HDF5's own: names, attributes

template <class N>
void write_vector(hdf5::Group& group, const char* name, const std::vector<N>& values) {
  if (values.empty()) return;
  group.create_dataset<N>(name, {values.size()}).template write<N>(values);
}

template <class N>
std::vector<N> read_vector(const hdf5::Group& group, const char* name) {
  if (!group.has(name)) return {};
  const hdf5::Dataset dataset = group.dataset(name);
  if (dataset.type().bytes != sizeof(N)) {
    refuse_checkpoint(dataset.name(), to_string(dataset.type()),
                      "numbers of " + std::to_string(8 * sizeof(N)) + " bits",
                      "resume with the precision the checkpoint was made with");
  }
  return dataset.read<N>();
}

void write_curve(hdf5::Group group, const std::vector<CurvePoint>& curve) {
  const auto column = [&](const char* name, auto member) {
    using N = std::remove_cvref_t<decltype(curve[0].*member)>;
    std::vector<N> values;
    for (const CurvePoint& point : curve) values.push_back(point.*member);
    write_vector(group, name, values);
  };
  column("iteration", &CurvePoint::iteration);
  column("loss", &CurvePoint::loss);
  column("watched", &CurvePoint::watched);
  column("gradient_norm", &CurvePoint::gradient_norm);
  column("learning_rate", &CurvePoint::learning_rate);
  column("phase", &CurvePoint::phase);
}

std::vector<CurvePoint> read_curve(const hdf5::Group& group) {
  std::vector<CurvePoint> curve;
  const auto column = [&](const char* name, auto member) {
    using N = std::remove_cvref_t<decltype(curve[0].*member)>;
    const std::vector<N> values = read_vector<N>(group, name);
    if (curve.empty()) curve.resize(values.size());
    if (curve.size() != values.size()) {
      refuse_checkpoint(group.name() + "/" + name, std::to_string(values.size()) + " numbers",
                        std::to_string(curve.size()), {});
    }
    for (std::size_t i = 0; i < values.size(); ++i) curve[i].*member = values[i];
  };
  column("iteration", &CurvePoint::iteration);
  column("loss", &CurvePoint::loss);
  column("watched", &CurvePoint::watched);
  column("gradient_norm", &CurvePoint::gradient_norm);
  column("learning_rate", &CurvePoint::learning_rate);
  column("phase", &CurvePoint::phase);
  return curve;
}

template <class T>
void write_pairs(hdf5::Group group, const LbfgsState<T>& state) {
  const std::size_t count = state.pairs.size(), size = state.gradient.size();
  if (count == 0) return;
  hdf5::Dataset steps = group.create_dataset<T>("step", {count, size});
  hdf5::Dataset changes = group.create_dataset<T>("change", {count, size});
  std::vector<double> curvatures;
  for (std::size_t k = 0; k < count; ++k) {
    steps.write<T>(state.pairs[k].step, {k, 0}, {1, size});
    changes.write<T>(state.pairs[k].change, {k, 0}, {1, size});
    curvatures.push_back(state.pairs[k].inverse_curvature);
  }
  write_vector(group, "inverse_curvature", curvatures);
}

template <class T>
void read_pairs(const hdf5::Group& group, LbfgsState<T>& state) {
  if (!group.has("step")) return;
  const hdf5::Dataset steps = group.dataset("step"), changes = group.dataset("change");
  const std::vector<double> curvatures = read_vector<double>(group, "inverse_curvature");
  const std::size_t count = curvatures.size(), size = state.gradient.size();
  for (const hdf5::Dataset* dataset : {&steps, &changes}) {
    if (dataset->shape() != hdf5::Shape{count, size} || dataset->type().bytes != sizeof(T)) {
      refuse_checkpoint(dataset->name(), "another shape or type",
                        "a row for each of " + std::to_string(count) + " pairs", {});
    }
  }
  for (std::size_t k = 0; k < count; ++k) {
    state.pairs.push_back({steps.read<T>({k, 0}, {1, size}), changes.read<T>({k, 0}, {1, size}), curvatures[k]});
  }
}

// The first lines of a text that another lacks.
std::string lines_only_in(const std::string& text, const std::string& other) {
  constexpr int kMost = 3;
  const auto lines_of = [](const std::string& of) {
    std::vector<std::string> lines;
    std::istringstream in(of);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  };
  const std::vector<std::string> there = lines_of(other);
  std::string only;
  int count = 0;
  for (const std::string& line : lines_of(text)) {
    if (std::ranges::find(there, line) != there.end()) continue;
    if (++count > kMost) return only + " and more";
    only += (only.empty() ? "" : ", ") + line;
  }
  return only;
}

}  // namespace

template <class T>
void write_checkpoint(const std::filesystem::path& path, const Checkpoint<T>& checkpoint) {
  const StandardReading arithmetic;
  std::uintmax_t bytes = checkpoint.curve.size() * sizeof(CurvePoint);
  visit_numbers<T>(checkpoint.state, [&](const char*, const std::vector<T>& v) { bytes += v.size() * sizeof(T); });
  for (const LbfgsPair<T>& pair : checkpoint.state.lbfgs.pairs) bytes += 2 * pair.step.size() * sizeof(T);
  hdf5::File file = hdf5::File::create(path, Existing::replace, bytes + kCheckpointOverhead);
  file.set_attribute(kFormatAttribute, kFormat);
  file.set_attribute("precision", std::string(to_string(kPrecisionOf<T>)));
  file.set_attribute("digest", digest(checkpoint));
  visit_numbers<T>(checkpoint.state, [&](const char* name, const std::vector<T>& v) { write_vector(file, name, v); });
  visit_scalars(checkpoint.state, [&](const char* name, double x) { file.set_attribute(name, x); });
  visit_counts(checkpoint.state,
               [&](const char* name, auto n) { file.set_attribute(name, static_cast<std::int64_t>(n)); });
  hdf5::Group identity = file.create_group("identity");
  for (const auto& [name, text] : checkpoint.identity) identity.set_attribute(name, text);
  write_curve(file.create_group("curve"), checkpoint.curve);
  write_pairs(file.create_group("lbfgs"), checkpoint.state.lbfgs);
  file.publish();
}

template <class T>
Checkpoint<T> read_checkpoint(const std::filesystem::path& path, const Identity& identity) {
  const StandardReading arithmetic;
  const hdf5::File file = hdf5::File::open(path);
  if (!file.has_attribute(kFormatAttribute)) {
    refuse_checkpoint(path.string(), "no attribute " + std::string(kFormatAttribute), "a checkpoint of a training", {});
  }
  if (const std::int64_t format = file.integer_attribute(kFormatAttribute); format != kFormat) {
    refuse_checkpoint(path.string(), "layout " + std::to_string(format), std::to_string(kFormat),
                      "use the version of lockstep that wrote it");
  }
  const std::string precision(to_string(kPrecisionOf<T>));
  if (file.string_attribute("precision") != precision) {
    refuse_checkpoint(path.string(), "a training in " + file.string_attribute("precision"), precision,
                      "resume with the precision the checkpoint was made with");
  }
  const hdf5::Group stored = file.group("identity");
  for (const auto& [name, text] : identity) {
    const std::string before = stored.has_attribute(name) ? stored.string_attribute(name) : "nothing";
    if (before == text || name.ends_with(kInFull)) continue;
    std::string then = before, now = text;
    const std::string full = name + std::string(kInFull);
    if (const auto known = identity.find(full); known != identity.end() && stored.has_attribute(full)) {
      const std::string was = stored.string_attribute(full);
      const std::string only_then = lines_only_in(was, known->second), only_now = lines_only_in(known->second, was);
      if (!only_then.empty() || !only_now.empty()) {
        then = only_then.empty() ? "nothing" : only_then;
        now = only_now.empty() ? "nothing" : only_now;
      }
    }
    refuse_checkpoint(path.string() + ": " + name, then + " when it was written, " + now + " now", "the same " + name,
                      "resume with the same " + name + ", or start anew");
  }
  Checkpoint<T> checkpoint;
  for (const std::string& name : stored.attribute_names()) checkpoint.identity[name] = stored.string_attribute(name);
  visit_numbers<T>(checkpoint.state, [&](const char* name, std::vector<T>& v) { v = read_vector<T>(file, name); });
  visit_scalars(checkpoint.state, [&](const char* name, double& x) { x = file.number_attribute(name); });
  visit_counts(checkpoint.state, [&](const char* name, auto& n) {
    n = static_cast<std::remove_cvref_t<decltype(n)>>(file.integer_attribute(name));
  });
  checkpoint.curve = read_curve(file.group("curve"));
  read_pairs(file.group("lbfgs"), checkpoint.state.lbfgs);
  if (digest(checkpoint) != file.string_attribute("digest")) {
    refuse_checkpoint(path.string(), "content that differs from its digest", "an undamaged checkpoint", "start anew");
  }
  return checkpoint;
}

template void write_checkpoint<float>(const std::filesystem::path&, const Checkpoint<float>&);
template void write_checkpoint<double>(const std::filesystem::path&, const Checkpoint<double>&);
template Checkpoint<float> read_checkpoint<float>(const std::filesystem::path&, const Identity&);
template Checkpoint<double> read_checkpoint<double>(const std::filesystem::path&, const Identity&);

}  // namespace lockstep::train
