// What two result files hold beside states, ends and attributes: names, numbers of trajectories, units, the problem.
#pragma once

#include <string>
#include <vector>

#include "lockstep/ode/result_file.h"

namespace lockstep::agreement {

// "component 0's name", "start_time of trajectory 3", "state: units", "problem/model"; both as text.
struct TableDifference {
  std::string table;
  std::string a;
  std::string b;
};

// Of the tables that tell about the numbers and that both files hold, every one that differs; of numbers the first that
// does. Files of other programs may leave out any of them.
std::vector<TableDifference> compare_tables(const ode::ResultFile& a, const ode::ResultFile& b);

}  // namespace lockstep::agreement
