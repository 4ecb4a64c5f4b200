#include "gpu_questions.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

namespace lockstep::benchmarks {
namespace {

using Json = nlohmann::json;
using Answer = nlohmann::ordered_json;

constexpr double kFmaOfOceanNet = 32 * 128 + 128 * 128 + 128 * 31;  // 32-128-128-31
constexpr double kH200Float64 = 16.75e12;                           // fma a second, from its data sheet: 33.5 TFLOP/s

template <class T>
std::optional<T> get(const Json& row, const char* key) {
  const auto found = row.find(key);
  if (found == row.end() || found->is_null()) return std::nullopt;
  try {
    return found->get<T>();
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

bool is(const Json& row, const char* key, const std::string& value) { return get<std::string>(row, key) == value; }

class Rows {
 public:
  explicit Rows(const std::vector<Json>& rows) : rows_(rows) {}

  // Of gpu_peak.
  std::optional<double> peak(const char* measure, const char* key, const char* precision = nullptr) const {
    for (const Json& row : rows_) {
      if (is(row, "measure", measure) && (precision == nullptr || is(row, "precision", precision)))
        return get<double>(row, key);
    }
    return std::nullopt;
  }
  std::string device() const {
    for (const Json& row : rows_) {
      if (is(row, "measure", "device")) return get<std::string>(row, "name").value_or("");
    }
    return "";
  }
  // Ours that hold a time, of a workload and precision (null: any).
  std::vector<const Json*> ours(const char* workload, const char* precision) const {
    std::vector<const Json*> found;
    for (const Json& row : rows_) {
      if (is(row, "workload", workload) && !row.contains("peer") && get<double>(row, "seconds") &&
          (precision == nullptr || is(row, "precision", precision)))
        found.push_back(&row);
    }
    return found;
  }
  std::vector<const Json*> peers(const char* workload, const char* precision) const {
    std::vector<const Json*> found;
    for (const Json& row : rows_) {
      if (is(row, "workload", workload) && row.contains("peer") && get<double>(row, "best") &&
          is(row, "precision", precision))
        found.push_back(&row);
    }
    return found;
  }

 private:
  const std::vector<Json>& rows_;
};

Answer unanswered(const std::string& question, const std::string& target, const std::string& why) {
  return {{"question", question}, {"verdict", "not measured"}, {"target", target}, {"why", why}};
}

// Where no row of ours counts: a wrong result does not meet a target.
Answer without_ours(const std::string& question, const std::string& target, const std::vector<const Json*>& ours) {
  Answer answer = unanswered(question, target, ours.empty() ? "no row of ours" : "our results are wrong");
  if (!ours.empty()) answer["verdict"] = "not met";
  return answer;
}

Answer answered(const std::string& question, bool met, const std::string& target, double measured,
                const std::string& unit) {
  return {{"question", question},
          {"verdict", met ? "met" : "not met"},
          {"target", target},
          {"measured", measured},
          {"unit", unit}};
}

double per_piece(const Json& row) { return *get<double>(row, "seconds") / get<double>(row, "size").value_or(1); }

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

// A peer's seconds for each trajectory or evaluation: it names its unit.
std::optional<double> seconds_per_piece(const Json& row) {
  const std::string unit = get<std::string>(row, "unit").value_or("");
  const double best = *get<double>(row, "best");
  if (unit == "ns/eval") return best * 1e-9;
  if (unit == "us/trajectory") return best * 1e-6;
  if (unit == "ms") return best * 1e-3 / get<double>(row, "size").value_or(1);
  return std::nullopt;
}

std::string name_of(const Json& row) {
  return get<std::string>(row, "peer").value_or("") + " at " +
         std::to_string(get<std::int64_t>(row, "size").value_or(0));
}

// Of those whose results are right: an error that is not finite is written as null.
const Json* fastest(const std::vector<const Json*>& rows, double largest_error = HUGE_VAL) {
  const Json* best = nullptr;
  for (const Json* row : rows) {
    const double error = row->contains("error") ? get<double>(*row, "error").value_or(NAN) : 0;
    if (!(error <= largest_error) || get<double>(*row, "failed").value_or(0) > 0) continue;
    if (best == nullptr || per_piece(*row) < per_piece(*best)) best = row;
  }
  return best;
}

// Beside a row of ours the time in which this card's schedulers can issue its instructions, by what docs/cuda.md ("What
// the machine code promises") counted in machine code: so many instructions of a warp for each piece. A scheduler
// issues one a clock, as many as fma of 32 threads in gpu_peak.
void add_prediction(Answer& answer, const Rows& rows, const Json& row, double instructions) {
  const auto peak = rows.peak("fma_peak", "fma_per_s", "float32");
  if (!peak || !(instructions > 0)) return;
  const double predicted = instructions / (*peak / 32);
  answer["predicted_ms"] = predicted * get<double>(row, "size").value_or(1) * 1e3;
  answer["times_predicted"] = per_piece(row) / predicted;
}
// A scheduler's for a tile of 128 samples; its clocks for the products of 32, at 63 % of their rate; a warp's for a
// step of 32 trajectories. sass_test.py notices when the code is no longer what was counted (gpu_instructions.tsv).
constexpr double kOceanNet = 31300 * 4 / 128.0, kOceanNetBf16 = 384 * 4 / 0.63 / 32;
constexpr double kTsit5Step = 524 / 32.0, kRk4Step = 60 / 32.0, kNeuralStep = 17430 / 32.0;

void ocean_net(const Rows& rows, std::vector<Answer>& answers) {
  const std::string f32 = "32-128-128-31 relu, 1M evaluations on the device, float32";
  const std::string f32_target = "at least 0.6 of the FMA peak";
  const auto ours = rows.ours("mlp", "float32"), ours_in_bf16 = rows.ours("mlp", "bf16");
  const Json* const row = fastest(ours);
  const auto peak = rows.peak("fma_peak", "fma_per_s", "float32");
  if (row == nullptr || !peak) {
    answers.push_back(row == nullptr ? without_ours(f32, f32_target, ours)
                                     : unanswered(f32, f32_target, "no FMA peak"));
  } else {
    const double share = kFmaOfOceanNet / per_piece(*row) / *peak;
    Answer answer = answered(f32, share >= 0.6, f32_target, share, "of the FMA peak");
    answer["ms"] = per_piece(*row) * 1e3 * 1048576;
    add_prediction(answer, rows, *row, kOceanNet);
    for (const Json* peer : rows.peers("mlp", "float32")) {
      if (is(*peer, "net", "ocean_32_128_128_31_relu") && get<double>(*peer, "size") >= 1e6)
        answer["peers"][name_of(*peer)] = *seconds_per_piece(*peer) / per_piece(*row);
    }
    answers.push_back(answer);
  }
  const std::string bf16 = "the same by bf16 tensor cores", bf16_target = "at least 5 times the float32 rate";
  const Json* const fast = fastest(ours_in_bf16);
  if (row == nullptr || fast == nullptr) {
    answers.push_back(without_ours(bf16, bf16_target, fast == nullptr ? ours_in_bf16 : ours));
    return;
  }
  const double ratio = per_piece(*row) / per_piece(*fast);
  Answer answer = answered(bf16, ratio >= 5, bf16_target, ratio, "times float32");
  add_prediction(answer, rows, *fast, kOceanNetBf16);
  for (const Json* peer : rows.peers("mlp", "bf16")) {
    if (get<double>(*peer, "size") >= 1e6)
      answer["peers"][name_of(*peer)] = *seconds_per_piece(*peer) / per_piece(*fast);
  }
  answers.push_back(answer);
}

void lorenz_adaptive(const Rows& rows, double tolerance, double target_ms, std::vector<Answer>& answers) {
  const std::string question =
      "Lorenz float64 adaptive, 524,288 trajectories, at the error of tsit5 with rtol " + number(tolerance);
  const auto peak = rows.peak("fma_peak", "fma_per_s", "float64");
  const bool h200 = rows.device().find("H200") != std::string::npos;
  const double scaled = h200 || !peak ? target_ms : target_ms * kH200Float64 / *peak;
  const std::string target = "at most " + number(scaled) + " ms";
  const auto ours = rows.ours("lorenz", "float64");
  const Json* named = nullptr;
  for (const Json* row : ours) {
    if (is(*row, "method", "tsit5") && get<double>(*row, "tolerance") == tolerance) named = row;
  }
  if (named == nullptr) {
    answers.push_back(unanswered(question, target, "no row of ours"));
    return;
  }
  const Json* const best = fastest(ours, get<double>(*named, "error").value_or(0));
  if (best == nullptr) {
    answers.push_back(without_ours(question, target, ours));
    return;
  }
  const double ms = per_piece(*best) * 524288 * 1e3;
  Answer answer = answered(question, ms <= scaled, target, ms, "ms");
  answer["by"] = get<std::string>(*best, "method").value_or("") + " at " + number(*get<double>(*best, "tolerance"));
  answer["error"] = *get<double>(*best, "error");
  if (!h200) answer["why"] = "the target is gradsolve's on an H200, scaled by the float64 peak";
  if (is(*best, "method", "tsit5"))
    add_prediction(answer, rows, *best, kTsit5Step * get<double>(*best, "steps").value_or(0));
  for (const Json* peer : rows.peers("lorenz", "float64")) {
    if (get<double>(*peer, "tol") != tolerance) continue;
    // Against what reaches the peer's own error.
    const Json* const equal = fastest(ours, get<double>(*peer, "max_abs_err").value_or(0));
    if (equal != nullptr) answer["peers"][name_of(*peer)] = *seconds_per_piece(*peer) / per_piece(*equal);
  }
  answers.push_back(answer);
}

void lorenz_fixed(const Rows& rows, std::vector<Answer>& answers) {
  const std::string question = "Lorenz float32, 8,388,608 trajectories, 1,000 steps of rk4";
  const std::string target = "no slower than the best other";
  const auto ours = rows.ours("lorenz", "float32");
  const Json* const row = fastest(ours);
  if (row == nullptr) {
    answers.push_back(without_ours(question, target, ours));
    return;
  }
  double least = HUGE_VAL;
  Answer ratios;
  for (const Json* peer : rows.peers("lorenz", "float32")) {
    const double ratio = *seconds_per_piece(*peer) / per_piece(*row);
    ratios[name_of(*peer)] = ratio;
    least = std::min(least, ratio);
  }
  Answer answer = least == HUGE_VAL ? unanswered(question, target, "no other library ran")
                                    : answered(question, least >= 1, target, least, "times the best other's rate");
  answer["ms"] = per_piece(*row) * 8388608 * 1e3;
  add_prediction(answer, rows, *row, kRk4Step * get<double>(*row, "steps").value_or(0));
  if (!ratios.is_null()) answer["peers"] = ratios;
  answers.push_back(answer);
}

void neural(const Rows& rows, std::vector<Answer>& answers) {
  const std::string question = "3-100-3 tanh net, 1M trajectories, 101 saved, adaptive 1e-6, ";
  const auto ours = rows.ours("neural", "float32");
  const Json* const row = fastest(ours);
  const Json* const cpu = fastest(rows.ours("neural_cpu", nullptr));
  const auto against = [&](const std::string& what, double least, std::optional<double> ratio,
                           const std::string& missing) {
    const std::string target = "at least " + number(least) + " times";
    if (row == nullptr || !ratio) {
      answers.push_back(row == nullptr ? without_ours(question + what, target, ours)
                                       : unanswered(question + what, target, missing));
      return;
    }
    Answer answer = answered(question + what, *ratio >= least, target, *ratio, "times");
    answer["us_a_trajectory"] = per_piece(*row) * 1e6;
    add_prediction(answer, rows, *row, kNeuralStep * get<double>(*row, "steps").value_or(0));
    for (const Json* peer : rows.peers("neural", "float32")) {
      if (get<double>(*peer, "tol") == 1e-6)
        answer["peers"][name_of(*peer)] = *seconds_per_piece(*peer) / per_piece(*row);
    }
    answers.push_back(answer);
  };
  std::optional<double> diffrax;
  for (const Json* peer : rows.peers("neural", "float32")) {
    if (row == nullptr || !get<std::string>(*peer, "peer").value_or("").starts_with("diffrax")) continue;
    if (get<double>(*peer, "tol") != 1e-6) continue;
    const double ratio = *seconds_per_piece(*peer) / per_piece(*row);
    diffrax = std::min(diffrax.value_or(HUGE_VAL), ratio);  // its fastest way
  }
  against("against diffrax on this card", 50, diffrax, "diffrax did not run");
  std::optional<double> cores;
  if (row != nullptr && cpu != nullptr) cores = per_piece(*cpu) / per_piece(*row);
  against("against this machine's CPU", 30, cores, "no row of the CPU");
}

void file(const Rows& rows, std::vector<Answer>& answers) {
  const std::string question = "device to HDF5, end to end", target = "at least 0.8 of the disk's or the bus's rate";
  const Json* const row = fastest(rows.ours("file", nullptr));
  const auto bus = rows.peak("device_to_host", "bytes_per_s");
  const auto disk = row == nullptr ? std::nullopt : get<double>(*row, "plain_bytes_per_s");
  if (row == nullptr || !bus || !disk) {
    answers.push_back(unanswered(question, target, row == nullptr ? "no row of ours" : "no rate of the bus"));
    return;
  }
  const double share = get<double>(*row, "bytes_per_s").value_or(0) / std::min(*bus, *disk);
  Answer answer = answered(question, share >= 0.8, target, share, "of the lower rate");
  answer["why"] = *bus < *disk ? "the bus is the lower" : "the disk is the lower";
  answers.push_back(answer);
}

// Nobody has published such a figure: the target is what is left to steps and copies beside the products.
void wide_net(const Rows& rows, std::vector<Answer>& answers) {
  const std::string question = "3-512-512-3 relu by cuda_gemm, 131,072 trajectories, 16 steps of rk4, float32";
  const std::string target = "at least 0.5 of the FMA peak";
  const auto ours = rows.ours("wide_net", "float32");
  const Json* const row = fastest(ours);
  const auto peak = rows.peak("fma_peak", "fma_per_s", "float32");
  const auto operations = row == nullptr ? std::nullopt : get<double>(*row, "operations");
  if (!operations || !peak) {
    answers.push_back(operations ? unanswered(question, target, "no FMA peak") : without_ours(question, target, ours));
    return;
  }
  const double share = *operations / per_piece(*row) / *peak;
  Answer answer = answered(question, share >= 0.5, target, share, "of the FMA peak");
  for (const char* mode : {"tf32", "bf16", "fp16"}) {
    if (const Json* const fast = fastest(rows.ours("wide_net", mode)))
      answer["modes"][mode] = per_piece(*row) / per_piece(*fast);
  }
  answers.push_back(answer);
}

// Nor this one: what makes the device worth its while, and `auto` may be told of where it holds.
void stiff(const Rows& rows, std::vector<Answer>& answers) {
  const std::string question = "Robertson's reaction by rodas5p, float64, 262,144 trajectories, against all CPU cores";
  const std::string target = "at least 1 times";
  const auto ours = rows.ours("stiff", "float64");
  const Json* const row = fastest(ours);
  const Json* const cpu = fastest(rows.ours("stiff_cpu", nullptr));
  if (row == nullptr || cpu == nullptr) {
    answers.push_back(row == nullptr ? without_ours(question, target, ours)
                                     : unanswered(question, target, "no row of the CPU"));
    return;
  }
  const double ratio = per_piece(*cpu) / per_piece(*row);
  answers.push_back(answered(question, ratio >= 1, target, ratio, "times"));
}

}  // namespace

std::vector<Answer> answer_questions(const std::vector<Json>& all) {
  const Rows rows(all);
  std::vector<Answer> answers;
  ocean_net(rows, answers);
  lorenz_adaptive(rows, 1e-3, 0.27, answers);
  lorenz_adaptive(rows, 1e-6, 0.65, answers);
  lorenz_adaptive(rows, 1e-8, 1.4, answers);
  lorenz_fixed(rows, answers);
  neural(rows, answers);
  wide_net(rows, answers);
  stiff(rows, answers);
  file(rows, answers);
  return answers;
}

}  // namespace lockstep::benchmarks
