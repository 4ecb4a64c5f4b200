// What to tell of trajectories that ended as nobody wished, by status.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "lockstep/ode/options.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/trajectory_record.h"

namespace lockstep::cli {

inline constexpr std::array kEndedEarly{ode::Status::step_too_small, ode::Status::not_finite,
                                        ode::Status::too_many_steps};

// Why they end so, or what to do about it: "raise method.max_steps, or loosen the tolerances".
enum class HasResets { no, yes };
std::string advice_on(ode::Status status, const ode::Options& options, HasResets resets = HasResets::no);

// "3 of 10 trajectories ended early: 2 step_too_small (...), 1 not_finite (...)"; empty where none did. `but` one of
// the statuses, of which more is said elsewhere.
std::string ended_early_text(const ode::Summary& summary, std::size_t trajectories, const ode::Options& options,
                             std::optional<ode::Status> but = std::nullopt, HasResets resets = HasResets::no);

}  // namespace lockstep::cli
