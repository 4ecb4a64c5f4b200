// The oracle: end states of the published problems in 113-bit arithmetic, by Boost.Odeint's Runge-Kutta-Fehlberg 7(8)
// and equations of its own. It shares nothing with Lockstep but the numbers that define a problem.
#pragma once

#include <string>
#include <vector>

#include "problems.h"

namespace lockstep::validation {

// The end state, each number with 30 digits. Every step's error is estimated below the tolerance times 1 + |u|;
// 1e-15 to 1e-28 make sense. Takes milliseconds to a minute.
std::vector<std::string> oracle_end_state(const PublishedProblem& problem, double tolerance);

// How far two end states are apart at most, computed in 113 bits.
double largest_difference(const std::vector<std::string>& a, const std::vector<std::string>& b);

// The committed file's rows of one problem (made by make_oracle.cpp).
struct OracleValue {
  std::vector<double> end_state;    // rounded to float64
  std::vector<std::string> digits;  // as in the file
  double uncertainty = 0;           // of the digits
};
OracleValue read_oracle_value(const std::string& csv_path, const std::string& problem);

// What the file was made with.
inline constexpr double kOracleTolerance = 1e-26;
// The uncertainty is the difference from a solve whose tolerance is 100 times larger: at order 7 or 8 errors are then
// 100 times larger, so that it bounds the file's own error with room to spare.
inline constexpr double kOracleCheckTolerance = 1e-24;

}  // namespace lockstep::validation
