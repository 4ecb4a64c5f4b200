// Reads oracle_values.csv. Apart from oracle.cpp, so that readers need no Boost.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "lockstep/core/error.h"
#include "oracle.h"

namespace lockstep::validation {

OracleValue read_oracle_value(const std::string& csv_path, const std::string& problem) {
  std::ifstream file(csv_path);
  OracleValue value;
  for (std::string line; std::getline(file, line);) {
    std::istringstream row(line);
    std::string name, component, digits, uncertainty;
    std::getline(row, name, ',');
    if (name != problem) continue;
    std::getline(row, component, ',');
    std::getline(row, digits, ',');
    std::getline(row, uncertainty, ',');
    value.digits.push_back(digits);
    value.end_state.push_back(std::strtod(digits.c_str(), nullptr));
    value.uncertainty = std::strtod(uncertainty.c_str(), nullptr);
  }
  if (value.digits.empty()) {
    throw Error(ErrorKind::file, {csv_path, "no row of " + problem, "its end state", "run make_oracle"});
  }
  return value;
}

}  // namespace lockstep::validation
