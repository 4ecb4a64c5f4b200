// Solves a problem that comes as records and writes its solution as records: the part that runs on the other machine.
//   usage: portable_solve PROBLEM.rec SOLUTION.rec
#include <sys/utsname.h>

#include <cstdio>
#include <span>

#include "lockstep/nn/model.h"
#include "lockstep/nn/safetensors.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"
#include "tests/portable/records.h"

namespace lockstep::portable {
namespace {

ode::Rhs rhs_of(const Records& records) {
  ode::Rhs rhs;
  if (records.texts.contains("system")) rhs = ode::system(records.texts.at("system"));
  if (records.texts.contains("model")) {
    const std::string& bytes = records.texts.at("model");
    const nn::Model model = nn::read_safetensors(std::as_bytes(std::span(bytes)), "model");
    const ode::Rhs net = ode::net(nn::to_mlp(model));
    rhs = rhs ? ode::sum(rhs, net) : net;
  }
  return rhs;
}

void run(const char* from, const char* to) {
  const Records in = read_records(from);
  ode::Problem problem;
  problem.rhs = rhs_of(in);
  problem.initial_states = in.numbers.at("initial_states");
  problem.parameters = in.numbers.at("parameters");
  problem.start_times = in.numbers.at("start_times");
  problem.end_times = in.numbers.at("end_times");
  problem.save_times = in.numbers.at("save_times");
  ode::Options options;
  options.method = in.texts.at("method");
  options.precision = in.texts.at("precision") == "f32" ? Precision::f32 : Precision::f64;
  options.control = static_cast<ode::StepControl>(in.numbers.at("control")[0]);
  options.dt = in.numbers.at("dt")[0];
  options.rtol = in.numbers.at("rtol")[0];
  options.atol = in.numbers.at("atol")[0];
  options.threads = 2;
  ode::Solution solution(options.precision, problem.trajectories(), problem.rhs->components(), problem.save_times,
                         false);
  struct Sink : ode::SolutionSink {
    explicit Sink(ode::Solution& to) : solution(to) {}
    ode::SolutionBlock acquire(std::size_t first, std::size_t count) override { return solution.block(first, count); }
    void commit(const ode::SolutionBlock&) override {}
    ode::Solution& solution;
  } sink(solution);
  const ode::Summary summary = ode::solve(problem, options, sink);

  Records out;
  utsname machine{};
  ::uname(&machine);
  out.texts["machine"] = machine.machine;
  out.texts["cpu_target"] = summary.cpu_target;
  out.texts["kernel"] = summary.kernel;
  out.numbers["seconds"] = {summary.seconds};
  const auto keep = [&]<class T>(std::span<const T> states, std::span<const T> ends) {
    out.numbers["states"].assign(states.begin(), states.end());
    out.numbers["end_states"].assign(ends.begin(), ends.end());
  };
  if (options.precision == Precision::f32) {
    keep(solution.states<float>(), solution.end_states<float>());
  } else {
    keep(solution.states<double>(), solution.end_states<double>());
  }
  for (const ode::TrajectoryRecord& record : solution.records()) {
    for (const double value : {double(record.status), double(record.accepted), double(record.rejected),
                               double(record.evaluations), record.end_time}) {
      out.numbers["records"].push_back(value);
    }
  }
  write_records(to, out);
}

}  // namespace
}  // namespace lockstep::portable

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: portable_solve PROBLEM.rec SOLUTION.rec\n");
    return 2;
  }
  try {
    lockstep::portable::run(argv[1], argv[2]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "portable_solve: %s\n", error.what());
    return 2;
  }
}
