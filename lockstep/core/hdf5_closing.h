// Whether HDF5 could close all that was opened.
#pragma once

namespace lockstep::hdf5 {

// A file that cannot be written to its end, for want of room say, cannot be closed either: HDF5 1.10 then talks, or
// crashes, as the process ends. Where this is so a program of one's own had better end by std::_Exit.
bool closing_failed() noexcept;

}  // namespace lockstep::hdf5
