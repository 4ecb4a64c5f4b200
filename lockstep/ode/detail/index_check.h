// Whether the files behind an index are there, and as they were when it was made: HDF5 itself shows fill values in
// place of a missing one, and cuts lists of events that have grown.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/core/hdf5.h"

namespace lockstep::ode {

// The names of the files behind an index; none for other files. Throws Error (file) naming the first that is missing,
// no result file, or of another run than the index was made of; or the index, where its parts have since been continued
// or solved again.
std::vector<std::string> check_index(const hdf5::File& index);

// Where the names of an index begin, and HDF5 looks: the folder of the file itself, where `index` is a link to it.
std::filesystem::path folder_behind(const std::filesystem::path& index);

}  // namespace lockstep::ode
