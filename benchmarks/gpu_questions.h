// The questions a run on a card has to answer, each with its target, from rows that gpu_peak, gpu_bench and
// gpu_peers.py printed.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace lockstep::benchmarks {

// Each answer: question, verdict ("met", "not met", "not measured"), target, measured, unit, why (what is missing, or
// how the target was scaled), peers (their time over ours, by name) where they apply.
std::vector<nlohmann::ordered_json> answer_questions(const std::vector<nlohmann::json>& rows);

}  // namespace lockstep::benchmarks
