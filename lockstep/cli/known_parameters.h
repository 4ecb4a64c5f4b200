// The key `parameters` in [data] of a training file: parameters that are known, each trajectory's own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/cli/toml_value.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {

struct OdeSection;

struct KnownParameters {
  struct Of {
    std::string name, column;  // of a CSV, or a dataset [trajectory]
  };
  std::string where;
  std::vector<Of> of;

  bool empty() const { return of.empty(); }
  bool has(const std::string& name) const;
};

KnownParameters read_known_parameters(const TomlValue& data);

// Makes them parameters of the equations where they are none yet. Throws Error where there is nothing that has
// parameters, or one is to be found by the training, or is none of the system's.
void declare(const KnownParameters& known, OdeSection& ode);

// [trajectory][known parameter]. Throws Error naming file and line of the first number that differs from that before it
// in its trajectory; or dataset and shape.
std::vector<double> known_of_csv(const train::Table& csv, const KnownParameters& known,
                                 const std::vector<std::size_t>& lengths);
std::vector<double> known_of_hdf5(const hdf5::File& file, const KnownParameters& known, std::size_t trajectories);

// Parameters of each trajectory, [trajectory][parameter] by `names`: `shared` with the known ones in their places.
std::vector<double> with_known(const std::vector<double>& shared, const std::vector<std::string>& names,
                               const std::vector<std::string>& known_names, const std::vector<double>& known);

}  // namespace lockstep::cli
