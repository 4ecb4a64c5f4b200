// Every key of problem files and training files, table by table: what their readers take, and where a key that stands
// in the wrong table, or goes by another program's word, belongs.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>

#include "lockstep/cli/toml_value.h"

namespace lockstep::cli {

using Names = std::span<const std::string_view>;

// [method] and [run] are those of both.
inline constexpr auto kMethodKeys =
    std::to_array<std::string_view>({"name", "control", "rtol", "atol", "dt", "initial_step", "max_step", "stops",
                                     "stop_at_knots", "max_steps", "precision", "matrix_precision"});
inline constexpr auto kRunKeys = std::to_array<std::string_view>({"device", "engine", "threads", "cpu_target"});

inline constexpr auto kImpulsesKeys =
    std::to_array<std::string_view>({"component", "change", "factor", "times", "every", "from", "until", "file"});

namespace problem_keys {
inline constexpr auto kRhs =
    std::to_array<std::string_view>({"model", "system", "activations", "with_time", "components", "parameters", "guard",
                                     "equations", "definitions", "models", "tables", "units"});
inline constexpr auto kEnsemble =
    std::to_array<std::string_view>({"trajectories", "seed", "initial_state", "parameters", "grid"});
inline constexpr auto kTime = std::to_array<std::string_view>({"span", "save", "unit"});
inline constexpr auto kEvent = std::to_array<std::string_view>({"component", "value", "direction", "function"});
inline constexpr auto kResets = std::to_array<std::string_view>({"component", "value", "direction", "function", "to"});
inline constexpr auto kOutput = std::to_array<std::string_view>({"file", "overwrite", "components", "every", "events"});
}  // namespace problem_keys

namespace training_keys {
inline constexpr auto kNet =
    std::to_array<std::string_view>({"start", "hidden", "activation", "activations", "initialisation", "seed", "name"});
inline constexpr auto kData = std::to_array<std::string_view>(
    {"file", "inputs", "targets", "states", "time", "trajectory", "normalise", "validation", "validation_file", "units",
     "sigma", "absolute_sigma", "missing", "starts", "parameters"});
inline constexpr auto kRhs =
    std::to_array<std::string_view>({"equations", "definitions", "parameters", "models", "tables"});
inline constexpr auto kOde = std::to_array<std::string_view>({"system", "parameters", "with_time", "failed"});
// Of a phase, in groups that belong to some rules or schedules alone.
inline constexpr auto kPhase = std::to_array<std::string_view>(
    {"name",           "optimiser", "iterations", "rate",         "schedule",    "warm_up",    "total",
     "final_fraction", "factor",    "every",      "patience",     "improvement", "floor",      "momentum",
     "beta1",          "beta2",     "epsilon",    "weight_decay", "clip_norm",   "clip_value", "target",
     "stop_after",     "batch",     "segment",    "horizon",      "dt",          "history",    "continuity"});
inline constexpr auto kTraining =
    std::to_array<std::string_view>({"loss", "huber_threshold", "phases"});  // beside those of a phase
inline constexpr auto kOutput = std::to_array<std::string_view>({"file", "overwrite", "checkpoint_every"});
}  // namespace training_keys

enum class FileKind { problem, training };

// Where a key goes that is called by another program's word, or by that of our own table: "t_eval" is [time] save.
struct KeyPlace {
  std::string_view table, key;  // no key: the table is called so
};
std::optional<KeyPlace> place_of_word(std::string_view word, FileKind kind);

// Throws Error (invalid_argument) for a key that its table has not where another table has it, or where it is another
// program's word for one, saying what to write where. Other unknown keys are left to allow_only().
void refuse_misplaced_keys(const TomlValue& file, FileKind kind);

}  // namespace lockstep::cli
