// Carries a problem out of a result file to a machine without HDF5, and that machine's solution back into one.
//   usage: portable_carry out A.h5 PROBLEM.rec          the problem that A.h5 is a solution of
//          portable_carry back A.h5 SOLUTION.rec B.h5    the solution of it, as a result file that says where it was
//          made
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>

#include "lockstep/cli/stored_problem.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/ode/result_writer.h"
#include "tests/portable/records.h"

namespace lockstep::portable {
namespace {

cli::StoredProblem problem_of(const ode::ResultFile& file) {
  std::vector<std::size_t> all(file.trajectories());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return cli::rebuild_problem(file, all);
}

void carry_out(const char* from, const char* to) {
  const ode::ResultFile file(from);
  const auto [problem, options, components] = problem_of(file);
  if (problem.event || problem.save_times_per_trajectory || options.initial_step || options.max_step ||
      !components.empty() || !options.component_atol.empty()) {
    throw Error(ErrorKind::unsupported, {from,
                                         "an event, some of the components, tolerances of each component's or times "
                                         "of each trajectory's own, or bounds on its steps",
                                         "none of these, which records have no room for",
                                         {}});
  }
  Records records;
  const hdf5::Group group = file.hdf5().group("problem");
  if (group.has_attribute("system")) records.texts["system"] = group.string_attribute("system");
  if (group.has("model")) {
    const auto bytes = group.dataset("model").read<std::uint8_t>();
    records.texts["model"] = {bytes.begin(), bytes.end()};
  }
  records.texts["method"] = options.method;
  records.texts["precision"] = std::string(to_string(options.precision));
  records.numbers["control"] = {static_cast<double>(options.control)};
  records.numbers["dt"] = {options.dt};
  records.numbers["rtol"] = {options.rtol};
  records.numbers["atol"] = {options.atol};
  records.numbers["initial_states"] = problem.initial_states;
  records.numbers["parameters"] = problem.parameters;
  records.numbers["start_times"] = problem.start_times;
  records.numbers["end_times"] = problem.end_times;
  records.numbers["save_times"] = problem.save_times;
  write_records(to, records);
}

// The problem's attributes are a's; what the run was is the other machine's.
ode::Attributes attributes_of(const ode::ResultFile& file, const Records& solution) {
  const std::string machine = solution.texts.at("machine");
  ode::Attributes attributes;
  for (const char* name : {"version", "problem_digest", "rhs", "rhs_digest", "method", "control", "precision",
                           "max_steps", "seed", "model", "model_digest", "dt", "rtol", "atol"}) {
    if (const auto value = file.attribute(name)) attributes.emplace_back(name, *value);
  }
  attributes.emplace_back("source", "portable_solve on " + machine + ", carried into HDF5 by portable_carry");
  attributes.emplace_back("engine", std::string("cpu (") + machine + ")");
  attributes.emplace_back("cpu_target", solution.texts.at("cpu_target"));
  attributes.emplace_back("kernel", solution.texts.at("kernel"));
  attributes.emplace_back("threads", std::int64_t{2});
  attributes.emplace_back("seconds", solution.numbers.at("seconds")[0]);
  return attributes;
}

void carry_back(const char* reference, const char* from, const char* to) {
  const ode::ResultFile file(reference);
  const Records solution = read_records(from);
  const auto [problem, options, components] = problem_of(file);
  const std::size_t trajectories = problem.trajectories();
  ode::ResultWriter writer(
      to, problem, options.precision,
      {file.text_attribute("title"), file.component_names(), file.parameter_names(), attributes_of(file, solution), {}},
      Existing::replace);
  const ode::SolutionBlock block = writer.acquire(0, trajectories);
  const auto fill = [&]<class T>(T) {
    const auto put = [](const std::vector<double>& values, void* at) {
      std::ranges::transform(values, static_cast<T*>(at), [](double x) { return static_cast<T>(x); });
    };
    put(solution.numbers.at("states"), block.state);
    put(solution.numbers.at("end_states"), block.end_state);
  };
  if (options.precision == Precision::f32) {
    fill(float{});
  } else {
    fill(double{});
  }
  for (std::size_t i = 0; i < trajectories; ++i) {
    const double* record = solution.numbers.at("records").data() + 5 * i;
    block.records[i] = {static_cast<ode::Status>(record[0]), static_cast<std::int32_t>(record[1]),
                        static_cast<std::int32_t>(record[2]), static_cast<std::int32_t>(record[3]), record[4]};
  }
  writer.commit(block);
  writer.finish({});
}

}  // namespace
}  // namespace lockstep::portable

int main(int argc, char** argv) {
  using namespace lockstep::portable;
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    if (what == "out" && argc == 4) {
      carry_out(argv[2], argv[3]);
    } else if (what == "back" && argc == 5) {
      carry_back(argv[2], argv[3], argv[4]);
    } else {
      std::fprintf(stderr,
                   "usage: portable_carry out A.h5 PROBLEM.rec\n"
                   "       portable_carry back A.h5 SOLUTION.rec B.h5\n");
      return 2;
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "portable_carry: %s\n", error.what());
    return 2;
  }
}
