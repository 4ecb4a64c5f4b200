// Standard deviations of measurements: what a training file says of them, and their numbers beside the data.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/data_numbers.h"
#include "lockstep/cli/toml_value.h"
#include "lockstep/ode/parameter_uncertainty.h"

namespace lockstep::cli {

struct SigmaSection {
  struct Of {
    std::string name;  // of a state or target
    std::string where;
    double size = 0;     // of all its measurements, where there is no; NaN of one that may lack it
    std::string column;  // of a CSV, or dataset, that has one for each of them
  };
  std::string where;
  std::vector<Of> named;
  std::vector<std::string> columns;  // instead: of the states or targets in their order, or one dataset of their shape
  std::optional<ode::ErrorSize> given_size;
  std::vector<std::string> may_lack;  // states that need not be among them, as nothing of them may be measured

  bool empty() const { return named.empty() && columns.empty(); }
  bool one_by_one() const;  // each measurement has its own
  // Who has a number for each measurement knows its size; of one for all states the ratios count.
  ode::ErrorSize error_size() const;
  // Unless absolute_sigma = false says that they are ratios alone.
  bool may_tell_sizes() const { return !empty() && given_size != ode::ErrorSize::from_fit; }
  // One for each of `names`, in their order. Throws Error naming what lacks one, or is none of them.
  std::vector<Of> of(const std::vector<std::string>& names) const;
};

// The keys sigma and absolute_sigma of [data].
enum class SigmaOf { trajectories, regression };
SigmaSection read_sigma(const TomlValue& data, SigmaOf of);

// [row][name]; NaN where a cell is empty.
std::vector<double> sigma_of_csv(const train::Table& csv, const SigmaSection& sigma,
                                 const std::vector<std::string>& names);

// Throws Error for a measurement without one, or with one that is not greater than 0; `place` says where the number at
// an index of `values`, [row][name], stands.
void require_sigma(const std::vector<double>& values, const std::vector<double>& sigma,
                   const std::function<std::string(std::size_t)>& place);

}  // namespace lockstep::cli
