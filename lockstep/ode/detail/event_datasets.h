// Where a result file keeps the events of its trajectories: docs/files.md, "Events".
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/core/hdf5.h"
#include "lockstep/ode/detail/event_journal.h"

namespace lockstep::ode {

// All that the journal holds, after sync(), in place of what the file may have of them. The first trajectory has the
// number `first_trajectory` in its ensemble. `reset_texts`: what each reset is, for people; or none.
void write_event_datasets(hdf5::File& file, const EventJournal& journal, std::size_t first_trajectory,
                          const std::vector<std::string>& reset_texts);

// Those of a file that was finished with some trajectories left open, which is continued: of trajectories that the
// journal does not hold.
void append_event_datasets(const hdf5::File& file, std::size_t first_trajectory, EventJournal& journal);

}  // namespace lockstep::ode
