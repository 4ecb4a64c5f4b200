// PROBLEM.toml: parsed and checked key by key; no model is loaded, but equations are read.
#include <string_view>

#include "fuzz/fuzz.h"
#include "lockstep/cli/problem_file.h"
#include "lockstep/nn/equations.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  return fuzz::expect_result_or_error([&] {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const cli::ProblemFile file = cli::parse_problem_file(text, "folder/problem.toml");
    file.options.validate();
    if (!file.rhs.equations) return;
    nn::equations(file.rhs.equations->system);
    for (const cli::ResetSection& reset : file.resets) nn::expressions(reset.to, file.rhs.equations->system);
  });
}
