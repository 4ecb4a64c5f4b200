// From what a problem file says to a problem that can be solved: models loaded, ensembles drawn, names known.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/ensemble_grid.h"
#include "lockstep/cli/problem_file.h"
#include "lockstep/cli/state_events.h"
#include "lockstep/ode/guard.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/result_writer.h"

namespace lockstep::cli {

class StoredModel;  // right_hand_side.h

struct ProblemSetup {
  ode::Problem problem;
  ode::Options options;
  std::string title;                         // "Lorenz 1963"
  std::vector<std::string> component_names;  // [component]
  std::vector<std::string> component_units;  // [component], "" where it is unknown; empty where all are
  std::string time_unit;
  std::vector<std::string> parameter_names;  // [parameter]
  ode::Range range;                          // the net's training range, or nothing
  ode::GuardAction guard = ode::GuardAction::ignore;
  std::vector<std::string> notes;  // for people
  std::string step_limit;          // for people: why steps have a longest one that the file does not state
  std::shared_ptr<const StoredModel> stored_model;  // none without a model
  std::string equations;
  GridShape grid;                  // its names and numbers of values, the slowest first; or none
  std::string impulses;            // for people: those of the whole ensemble, "" for none
  std::optional<EventForm> event;  // that the file asks for
  std::vector<ResetForm> resets;
  // Where the problem is one shard of what the file describes (shard.h): its place, its name, and the whole's digest.
  std::optional<ode::ResultMetadata::PartOf> part_of;
  std::string shard;
  std::string whole_digest;
  std::vector<std::size_t> stored;  // components that go to the file; empty: all

  std::vector<std::string> stored_names() const;
  std::vector<std::string> step_lines() const;  // for people: step_limit, and that steps end at times of their own
};

// Throws Error naming file, line and key of the field that is missing or does not fit.
ProblemSetup set_up(const ProblemFile& file);

}  // namespace lockstep::cli
