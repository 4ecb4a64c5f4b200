// What is known of a built-in system besides its equations.
#pragma once

#include <string>
#include <vector>

namespace lockstep::ode {

struct SystemInfo {
  std::string name;
  std::string title;                    // "Lorenz 1963"
  std::string source;                   // paper, equation
  std::vector<std::string> components;  // names
  std::vector<std::string> parameters;  // names
  std::vector<double> default_parameters;
  std::vector<double> default_initial_state;
  double default_end_time = 1;
  bool reads_time = false;  // is not autonomous
};

}  // namespace lockstep::ode
