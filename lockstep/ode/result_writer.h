// Streams an ensemble's results into a file while it is being solved.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/core/pending_file.h"
#include "lockstep/ode/impulse_form.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/ode/solution.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {

class ChunkWriter;

// What a file says about itself beyond the numbers.
struct ResultMetadata {
  std::string title;
  std::vector<std::string> component_names;  // [component], of those that are stored; empty: u0, u1, ...
  std::vector<std::string> parameter_names;  // [parameter]; empty: p0, p1, ...
  Attributes attributes;                     // provenance, on the root group
  // Adds datasets of its own while the file is made; what they hold must be known before the solve. May be empty.
  std::function<void(hdf5::File&)> more;
  // Where the problem is Problem::part() of a larger ensemble: its place there.
  struct PartOf {
    std::size_t first_trajectory = 0;
    std::size_t trajectories = 0;            // of the whole ensemble
    bool parameters_per_trajectory = false;  // in the whole ensemble; a part of one row cannot tell
    bool end_times_per_trajectory = false;   // likewise
    std::optional<ImpulseForm> impulses{};   // likewise; without, the part's own
  };
  std::optional<PartOf> part_of;
  // Which components of the state are stored; empty: all of them. The solve's blocks hold them all in any case.
  std::vector<std::size_t> components;
  // Names of attributes that decide the numbers: a file in which one of them differs is not continued.
  std::vector<std::string> must_match;
  // What each of Problem::resets is, for people who read its events; may be empty.
  std::vector<std::string> reset_texts;
};

// What an earlier run left in a file that is continued.
struct StoredBefore {
  std::size_t trajectories = 0;    // that are not solved again
  std::size_t without_events = 0;  // trajectories that were stored and are solved again, for their events are lost
  Summary totals;                  // counts of the stored ones
};

// A sink whose blocks go to an HDF5 file of the layout in docs/files.md. The file grows as NAME.part beside its
// target, all its disk space taken first, locked against a second writer, and gets its name in finish(). Trajectories
// are gathered into chunks of consecutive rows; a thread of the writer's own stores each chunk when its last row is
// committed, and a few times a second what else has become ready, so that solving goes on meanwhile. Engines write into
// the chunks directly; acquire() waits when more than a few chunks are unwritten. Without finish(), and when the
// process is killed, NAME.part keeps every trajectory stored so far.
class ResultWriter : public SolutionSink {
 public:
  // The problem must be valid and outlive the writer. Throws Error (invalid_argument) when the metadata name another
  // number of components or parameters than the problem has, and Error (file) when the file exists (unless it may be
  // replaced), an earlier run left NAME.part (likewise), somebody else is writing it, its folder is not writable, or
  // the disk has no room.
  ResultWriter(const std::filesystem::path& path, const Problem& problem, Precision precision, ResultMetadata metadata,
               Existing existing = Existing::refuse);
  // With Leftover::resume continues NAME.part, or a file of the target's name in which trajectories are cancelled;
  // begins anew where there is neither. Throws Error (file) when it is of another problem: see check_continues().
  ResultWriter(const std::filesystem::path& path, const Problem& problem, Precision precision, ResultMetadata metadata,
               Existing existing, Leftover unfinished);
  ~ResultWriter() override;

  // The trajectories that are not in the file yet, ascending: at first all of them, or what an earlier run left open.
  // Only these are to be committed; see ode/row_selection.h.
  std::vector<std::size_t> open_rows() const;
  const StoredBefore& stored_before() const;
  // What finish() would have to fill, in bytes.
  std::uintmax_t open_bytes() const;

  SolutionBlock acquire(std::size_t first, std::size_t count) override;
  void commit(const SolutionBlock& block) override;
  // Grow a few times a second: what is finished is in the file within a second or two of disk time, in whatever block.
  const std::atomic<std::uint32_t>* wishes() const override;
  void hand_in(const SolutionBlock& block, std::span<const std::size_t> rows) override;

  // Stores what is left, marks trajectories never committed as cancelled with NaN states, adds the attributes, and
  // gives the file its name. Throws Error (file). Returns the file's size in bytes.
  std::uintmax_t finish(const Attributes& attributes);
  // Stores what is left and leaves the file unfinished as NAME.part, which it returns. Rows never committed are not
  // written, which is quick however many there are; for who reads them all the same, `fill`: as finish() has them.
  std::filesystem::path leave(const Attributes& attributes, bool fill = false);

 private:
  std::unique_ptr<ChunkWriter> chunks_;
  std::unique_ptr<SolutionSink> selection_;  // before them, where not all components are stored
};

}  // namespace lockstep::ode
