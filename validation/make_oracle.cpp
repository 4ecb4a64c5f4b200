// Writes oracle_values.csv, the end states that the accuracy tests and the work-precision tables compare with:
//   build/bin/make_oracle > validation/oracle_values.csv
// or, for some problems only, make_oracle NAME...
#include <cstdio>
#include <string>
#include <vector>

#include "oracle.h"

namespace validation = lockstep::validation;

int main(int count, char** arguments) {
  const std::vector<std::string> wanted(arguments + 1, arguments + count);
  std::printf(
      "# End states by Boost.Odeint's Runge-Kutta-Fehlberg 7(8) in 113-bit arithmetic, tolerance %.0e. Made by\n"
      "#   build/bin/make_oracle > validation/oracle_values.csv\n"
      "# uncertainty: the largest difference from a solve with tolerance %.0e.\n"
      "problem,component,value,uncertainty\n",
      validation::kOracleTolerance, validation::kOracleCheckTolerance);
  for (const auto& problem : validation::published_problems()) {
    bool skip = !wanted.empty();
    for (const std::string& name : wanted) skip = skip && name != problem.name;
    if (skip) continue;
    const auto end = validation::oracle_end_state(problem, validation::kOracleTolerance);
    const auto check = validation::oracle_end_state(problem, validation::kOracleCheckTolerance);
    const double uncertainty = validation::largest_difference(end, check);
    for (std::size_t c = 0; c < end.size(); ++c) {
      std::printf("%s,%zu,%s,%.1e\n", problem.name.c_str(), c, end[c].c_str(), uncertainty);
    }
    std::fflush(stdout);
  }
}
