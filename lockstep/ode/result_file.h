// An ensemble's results as an HDF5 file that xarray, h5py and Lockstep open: docs/files.md is the reference.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/core/hdf5.h"
#include "lockstep/core/precision.h"
#include "lockstep/ode/impulse_form.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode {

class EventJournal;

// Names within the file. Writer and reader use these alone.
namespace result_names {
inline constexpr const char* kState = "state";                 // T [trajectory][time][component]
inline constexpr const char* kEndState = "end_state";          // T [trajectory][component]
inline constexpr const char* kTime = "time";                   // f64 [time], or [trajectory][save_point]
inline constexpr const char* kStatus = "status";               // u8 [trajectory], ode::Status
inline constexpr const char* kAccepted = "accepted";           // i32 [trajectory]
inline constexpr const char* kRejected = "rejected";           // i32 [trajectory]
inline constexpr const char* kEvaluations = "evaluations";     // i32 [trajectory]
inline constexpr const char* kStartTime = "start_time";        // f64 [trajectory]
inline constexpr const char* kEndTime = "end_time";            // f64 [trajectory]
inline constexpr const char* kInitialState = "initial_state";  // f64 [trajectory][component]
inline constexpr const char* kParameters = "parameters";       // f64 [trajectory][parameter], or [parameter]
// Each [impulse], or [trajectory][impulse] where trajectories differ in it, or [impulse_trajectory] where some have
// more than others.
inline constexpr const char* kImpulseTime = "impulse_time";            // f64
inline constexpr const char* kImpulseComponent = "impulse_component";  // i32, index in the state
inline constexpr const char* kImpulseChange = "impulse_change";        // f64
inline constexpr const char* kImpulseFactor = "impulse_factor";        // f64
inline constexpr const char* kImpulse = "impulse";                     // dimension and its index
// Dimension of one trajectory's impulses after the other's, and whose each is.
inline constexpr const char* kImpulseTrajectory = "impulse_trajectory";
// Where events are kept: each [event_trajectory], one trajectory's after the other's.
inline constexpr const char* kEventTime = "event_time";              // f64
inline constexpr const char* kEventReset = "event_reset";            // i32, index of the reset
inline constexpr const char* kEventTrajectory = "event_trajectory";  // i64, dimension and whose each is
inline constexpr const char* kCommitted = "committed";         // i64, trajectories whose rows are whole
inline constexpr const char* kTrajectory = "trajectory";       // dimension and its index
inline constexpr const char* kSavePoint = "save_point";        // dimension in place of time where times differ
inline constexpr const char* kComponent = "component";         // dimension and its names
inline constexpr const char* kParameter = "parameter";         // dimension and its names
inline constexpr const char* kFormatAttribute = "lockstep_format";
inline constexpr const char* kFormat = "ensemble 1";
// Attributes of a file that holds a part of an ensemble: its first trajectory, and how many the ensemble has.
inline constexpr const char* kFirstTrajectory = "first_trajectory";
inline constexpr const char* kEnsembleTrajectories = "ensemble_trajectories";
inline constexpr const char* kShard = "shard";  // "3/16"
// Attributes of an index: the files it shows, relative to its folder, and the first trajectory of each.
inline constexpr const char* kIndexFiles = "index_files";
inline constexpr const char* kIndexFirst = "index_first_trajectories";
// Attributes that say in words what problem_digest says to the bit: blanks make other words, and no other problem.
inline constexpr std::array<std::string_view, 5> kProblemInWords{"rhs", "equations", "event", "resets", "impulses"};
inline constexpr const char* kProblemDigest = "problem_digest";
}  // namespace result_names

using Attributes = std::vector<std::pair<std::string, hdf5::AttributeValue>>;

// Reads any part of a result file. One thread at a time.
class ResultFile {
 public:
  // Throws Error (file) when it is missing, damaged, or no result file.
  explicit ResultFile(const std::filesystem::path& path);

  // True for an HDF5 file that says it holds an ensemble; never throws for other files.
  static bool recognises(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  Precision precision() const { return precision_; }
  std::size_t trajectories() const { return trajectories_; }
  std::size_t save_points() const { return save_points_; }
  std::size_t components() const { return component_names_.size(); }
  const std::vector<std::string>& component_names() const { return component_names_; }
  const std::vector<std::string>& parameter_names() const { return parameter_names_; }
  bool times_per_trajectory() const { return times_per_trajectory_; }
  bool parameters_per_trajectory() const { return parameters_per_trajectory_; }
  const ImpulseForm& impulse_form() const { return impulse_form_; }

  // The files behind an index (merge.h), as it names them; none for other files.
  const std::vector<std::string>& index_files() const { return index_files_; }
  // The ensemble's number of row 0, where the file holds a part of one.
  std::size_t first_trajectory() const { return first_trajectory_; }

  // Rows [first, first + count) of the trajectories. float or double; converts where the file holds the other.
  template <class T>
  std::vector<T> states(std::size_t first, std::size_t count) const;  // [trajectory][time][component]
  template <class T>
  std::vector<T> end_states(std::size_t first, std::size_t count) const;  // [trajectory][component]
  std::vector<TrajectoryRecord> records(std::size_t first, std::size_t count) const;
  std::vector<double> initial_states(std::size_t first, std::size_t count) const;  // [trajectory][component]

  // Cheap one after the other, where each trajectory has its own.
  std::vector<double> times(std::size_t trajectory) const;       // [time]
  std::vector<double> parameters(std::size_t trajectory) const;  // [parameter]
  // Of rows [first, first + count); those that all share without Impulses::first.
  Impulses impulses(std::size_t first, std::size_t count) const;
  // Whether it holds the events of its trajectories, or NAME.part.events beside it does, where it is unfinished; those
  // of rows [first, first + count), of none where it does not and of those that are not finished.
  bool keeps_events() const { return keeps_events_; }
  EventLog events(std::size_t first, std::size_t count) const;
  std::vector<std::string> reset_texts() const;  // what each reset is, where that is known; for people

  std::optional<hdf5::AttributeValue> attribute(const std::string& name) const;
  std::string text_attribute(const std::string& name) const;  // "" when there is none
  std::vector<std::string> attribute_names() const { return file_.attribute_names(); }
  // Everything else it holds, by name.
  const hdf5::File& hdf5() const { return file_; }

 private:
  // Some rows of a table [trajectory][width] at hand: a packed one is inflated chunk by chunk, however little is read.
  class RowsAtHand {
   public:
    std::vector<double> row(const hdf5::File& file, const char* name, std::size_t trajectory, std::size_t width);

   private:
    std::size_t first_ = 0;
    std::vector<double> numbers_;
  };

  void read_impulse_form();
  void check_events() const;
  EventLog events_in_tables(std::size_t first, std::size_t count) const;
  EventLog events_beside(std::size_t first, std::size_t count) const;
  // A dimension of one trajectory's entries after the other's: the first one of a row or a later one, and, of rows
  // [first, first + count) whose entries are [begin, begin + size), where each row's begin, and the end, [row + 1].
  std::size_t entries_before(const char* whose, std::size_t row) const;
  std::vector<std::size_t> rows_of_entries(const char* whose, std::size_t first, std::size_t count, std::size_t begin,
                                           std::size_t size) const;

  hdf5::File file_;
  Precision precision_ = Precision::f32;
  std::size_t trajectories_ = 0;
  std::size_t save_points_ = 0;
  bool times_per_trajectory_ = false;
  bool parameters_per_trajectory_ = false;
  bool keeps_events_ = false;
  bool events_beside_ = false;                           // in a journal
  mutable std::shared_ptr<const EventJournal> journal_;  // which is read when somebody asks
  ImpulseForm impulse_form_;
  std::size_t first_trajectory_ = 0;
  std::vector<std::string> index_files_;
  std::vector<std::string> component_names_;
  std::vector<std::string> parameter_names_;
  mutable RowsAtHand times_, parameters_;
};

// Trajectories of a result file that were not finished; of an index those of its parts. None where it has no status.
std::size_t count_cancelled(const hdf5::File& file);

}  // namespace lockstep::ode
