#include "lockstep/cli/commands/problem_flags.h"

#include <CLI/CLI.hpp>
#include <string>

#include "lockstep/cli/flag_checks.h"

namespace lockstep::cli {

void add_problem_flags(CLI::App& command, ProblemOverrides& overrides) {
  const std::string group = "Overriding the problem file";
  command.add_option("--trajectories", overrides.trajectories, "number of trajectories")
      ->transform(whole_number(1))
      ->group(group);
  command.add_option("--seed", overrides.seed, "seed of random initial states and parameters")
      ->transform(whole_number(0))
      ->group(group);
  command
      .add_option("--method", overrides.method,
                  "euler, midpoint, heun, rk4, bs3, dopri5, tsit5, vern7, dop853, vern9, rkc8, rkc20 or rodas5p")
      ->group(group);
  command.add_option("--rtol", overrides.rtol, "relative tolerance")->check(any_number())->group(group);
  command.add_option("--atol", overrides.atol, "absolute tolerance; 1e-6,1e-9: of each component")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("FLOAT,...")
      ->check(any_number())
      ->group(group);
  command.add_option("--dt", overrides.dt, "size of fixed steps")->check(any_number())->group(group);
  command.add_option("--precision", overrides.precision, "arithmetic: f32 or f64")
      ->check(one_of({"f32", "f64"}))
      ->group(group);
  command
      .add_option("--matrix-precision", overrides.matrix_precision,
                  "a net's matrix products on a GPU: f32, or tf32, bf16, fp16 by tensor cores")
      ->group(group);
  command.add_option("--threads", overrides.threads, "number of threads, 0 for all")
      ->transform(whole_number(0, 4096))
      ->group(group);
  command.add_option("--cpu-target", overrides.cpu_target, "instruction set: avx512, avx2, neon or scalar")
      ->group(group);
  command.add_option("--guard", overrides.guard, "outside the net's training range: flag, clamp, stop or ignore")
      ->group(group);
  command.add_option("--device", overrides.device, "auto, cpu, cuda, cuda:N, or shares: cpu=20%,cuda=80%")
      ->group(group);
  command.add_option("--engine", overrides.engine, "on a GPU: auto, cuda_fused (same bits), cuda_gemm (wide nets)")
      ->group(group);
}

}  // namespace lockstep::cli
