// Result files made smaller for the archive, without loss, so that any HDF5 program still reads them.
#pragma once

#include <cstdint>
#include <filesystem>

#include "lockstep/core/pending_file.h"
#include "lockstep/core/run_control.h"
#include "lockstep/ode/result_file.h"

namespace lockstep::ode {

struct PackOptions {
  Existing existing = Existing::refuse;  // of the target; it may be the source itself
  int level = 4;                         // of deflate, 1 to 9; higher ones gain little on numbers
  Attributes attributes;                 // replace the source's attributes of these names
};

struct Packed {
  std::uintmax_t bytes_before = 0;
  std::uintmax_t bytes_after = 0;
  bool stayed = false;  // in place, and packed it would have been no smaller: the file is as it was
  double ratio() const { return static_cast<double>(bytes_before) / static_cast<double>(bytes_after); }
};

// Copies everything the file holds; datasets of 64 kB and more are stored in chunks that are shuffled and deflated, by
// HDF5's own filters. Every number is read back and compared bit for bit before the target gets its name. Memory: some
// 16 MB. Progress counts bytes, twice each. Throws Error (file) for what is no result file, (invalid_argument) for an
// index of other files, an unfinished file or one that is packed already, (cancelled) at the caller's request: the
// source stays as it was. It also does where it is the target and would not become smaller, and Error (file) says so
// where it was written meanwhile.
Packed pack(const std::filesystem::path& source, const std::filesystem::path& target, const PackOptions& options = {},
            const RunControl& control = {});

}  // namespace lockstep::ode
