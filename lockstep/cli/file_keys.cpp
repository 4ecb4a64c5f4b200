#include "lockstep/cli/file_keys.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

struct TableKeys {
  std::string_view table;
  std::vector<std::string_view> keys;
};

std::vector<std::string_view> joined(Names first, Names second) {
  std::vector<std::string_view> all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

std::vector<TableKeys> tables_of(FileKind kind) {
  const auto all = [](Names names) { return joined(names, {}); };
  if (kind == FileKind::problem) {
    using namespace problem_keys;
    return {{"rhs", all(kRhs)},
            {"ensemble", all(kEnsemble)},
            {"time", all(kTime)},
            {"method", all(kMethodKeys)},
            {"event", all(kEvent)},
            {"resets", all(kResets)},
            {"impulses", all(kImpulsesKeys)},
            {"run", all(kRunKeys)},
            {"output", all(kOutput)}};
  }
  using namespace training_keys;
  return {{"net", all(kNet)},
          {"data", all(kData)},
          {"rhs", all(kRhs)},
          {"ode", all(kOde)},
          {"resets", all(problem_keys::kResets)},
          {"impulses", all(kImpulsesKeys)},
          {"training", joined(kPhase, kTraining)},
          {"phase", all(kPhase)},
          {"method", all(kMethodKeys)},
          {"run", all(kRunKeys)},
          {"output", all(kOutput)}};
}

// What other programs call a key: `words`, between blanks. `in` names the one table where that is so, or is empty.
struct Synonym {
  std::string_view in, words, table, key, example;
};

constexpr Synonym kSolverWords[] = {
    {"", "solver integrator algorithm scheme stepper alg", "method", "name", "\"tsit5\""},
    {"", "reltol rel_tol relative_tolerance tol tolerance", "method", "rtol", "1e-6"},
    {"", "abstol abs_tol absolute_tolerance", "method", "atol", "1e-6"},
    {"", "step step_size stepsize time_step timestep h delta_t", "method", "dt", "0.01"},
    {"", "dtmax hmax max_dt dt_max max_step_size", "method", "max_step", "0.1"},
    {"", "dt0 h0 first_step dt_initial", "method", "initial_step", "1e-3"},
    {"", "tstops t_stops step_ts jump_ts d_discontinuities breakpoints", "method", "stops", "[5, 7.5]"},
    {"", "maxiters mxstep max_num_steps nsteps", "method", "max_steps", "100000"},
    {"", "dtype real float_type", "method", "precision", "\"f64\""},
    {"", "adaptive stepsize_controller controller step_control", "method", "control", "\"per_trajectory\""},
    {"", "num_threads n_threads nthreads workers jobs cores", "run", "threads", "4"},
    {"", "backend gpu cuda cpu", "run", "device", "\"cpu\""},
    {"", "filename file_name path output_file outfile result", "output", "file", "\"result\""},
    {"output", "name", "output", "file", "\"result\""},
    {"", "force replace", "output", "overwrite", "true"},
    {"impulses", "variable state target", "impulses", "component", "\"x\""},
    {"impulses", "amount dose add amt value delta by", "impulses", "change", "100"},
    {"impulses", "scale multiply multiplier fraction", "impulses", "factor", "0.5"},
    {"impulses", "time at t", "impulses", "times", "[0, 24]"},
    {"impulses", "interval period", "impulses", "every", "24"},
    {"impulses", "start begin", "impulses", "from", "0"},
    {"impulses", "end stop to", "impulses", "until", "240"},
    {"", "impulse doses dose dosing bolus boluses jumps interventions", "impulses", "", ""},
    {"", "solver solve integrator integration tolerances algorithm numerics", "method", "", ""},
    {"", "execution hardware runtime parallel", "run", "", ""},
    {"", "outputs results", "output", "", ""},
};

constexpr Synonym kProblemWords[] = {
    {"rhs", "name problem", "rhs", "system", "\"lorenz\""},
    {"", "net network nn model_file file", "rhs", "model", "\"net.h5\""},
    {"", "ode odes rhs derivative derivatives f func fun", "rhs", "equations", "{ x = \"-x\" }"},
    {"", "forcing forcings lookup lookups series time_series", "rhs", "tables", "{ rain = { file = \"rain.csv\" } }"},
    {"", "variables states species names", "rhs", "components", "[\"x\", \"y\"]"},
    {"", "constants params p args theta", "rhs", "parameters", "{ k = 1 }"},
    {"",
     "initial initial_conditions initial_condition initial_states initial_value initial_values ics ic u0 y0 x0 "
     "state0 start_state",
     "ensemble", "initial_state", "[1, 0, 0]"},
    {"", "n n_trajectories num_trajectories ensemble_size samples size members count", "ensemble", "trajectories",
     "1000"},
    {"", "random_seed rng_seed rng", "ensemble", "seed", "1"},
    {"", "sweep scan product cartesian", "ensemble", "grid", "{ rho = { linspace = [20, 30, 11] } }"},
    {"", "tspan t_span time_span t0 t1 tf tend t_end t_final end_time start_time interval duration end start stop",
     "time", "span", "[0, 1]"},
    {"", "saveat save_at t_eval teval save_times save_points output_times n_save num_save save_every times points",
     "time", "save", "101"},
    {"time", "every interval", "time", "save", "{ every = 0.01 }"},
    {"", "time_unit", "time", "unit", "\"s\""},
    {"", "keep_events log_events save_events t_events event_log event_times spikes spike_times raster", "output",
     "events", "true"},
    {"resets", "condition crossing expression when", "resets", "function", "\"x - 1\""},
    {"resets", "variable", "resets", "component", "\"x\""},
    {"resets", "threshold at level", "resets", "value", "0"},
    {"resets", "affect affect! action set state new_state reset then becomes change", "resets", "to",
     "{ v = \"-0.9 * v\" }"},
    {"", "condition crossing expression when", "event", "function", "\"x - 1\""},
    {"event", "variable state", "event", "component", "\"x\""},
    {"event", "threshold at level", "event", "value", "0"},
    {"", "system model problem equation", "rhs", "", ""},
    {"", "initial_state initial trajectories parameters", "ensemble", "", ""},
    {"", "times save", "time", "", ""},
    {"", "events terminate termination stop", "event", "", ""},
    {"", "reset affect callback callbacks continuous_callback set", "resets", "", ""},
};

constexpr Synonym kTrainingWords[] = {
    {"", "learning_rate lr step_length eta", "training", "rate", "0.01"},
    {"", "epochs steps iters maxiter max_iter n_iter max_iterations n_epochs", "training", "iterations", "1000"},
    {"", "batch_size batchsize minibatch", "training", "batch", "256"},
    {"", "l2 regularisation regularization wd", "training", "weight_decay", "1e-4"},
    {"", "scheduler lr_schedule lr_scheduler", "training", "schedule", "\"cosine\""},
    {"", "loss_function criterion objective", "training", "loss", "\"mean_squared\""},
    {"", "gradient_clip grad_clip clip max_norm", "training", "clip_norm", "1"},
    {"", "warmup warmup_steps", "training", "warm_up", "100"},
    {"", "early_stopping", "training", "stop_after", "100"},
    {"", "layers widths width hidden_layers hidden_sizes hidden_units units_per_layer neurons sizes depth", "net",
     "hidden", "[100]"},
    {"", "nonlinearity activation_function", "net", "activation", "\"tanh\""},
    {"", "init initializer initialiser initialization", "net", "initialisation", "\"glorot_uniform\""},
    {"", "random_seed rng_seed rng", "net", "seed", "1"},
    {"", "x features predictors input", "data", "inputs", "[\"x\"]"},
    {"", "y labels outputs output target_columns", "data", "targets", "[\"y\"]"},
    {"", "t times time_column", "data", "time", "\"t\""},
    {"", "u state components observables variables", "data", "states", "[\"x\"]"},
    {"", "id group run_id experiment", "data", "trajectory", "\"run\""},
    {"", "validation_split validation_fraction test test_size holdout", "data", "validation", "0.1"},
    {"", "validation_data test_file test_data val_file", "data", "validation_file", "\"test.csv\""},
    {"", "normalize normalization normalisation scale scaling standardize standardise", "data", "normalise",
     "\"standard\""},
    {"", "csv dataset table data_file", "data", "file", "\"table.csv\""},
    {"output", "model net", "output", "file", "\"net\""},
    {"", "network model mlp nn", "net", "", ""},
    {"", "dataset csv", "data", "", ""},
    {"", "train optimiser optimizer optimisation optimization", "training", "", ""},
    {"", "equations", "rhs", "", ""},
    {"", "phases stages", "phase", "", ""},
};

bool among(std::string_view word, std::string_view words) {
  for (std::size_t first = 0; first < words.size();) {
    const std::size_t end = std::min(words.find(' ', first), words.size());
    if (words.substr(first, end - first) == word) return true;
    first = end + 1;
  }
  return false;
}

bool has(const std::vector<std::string_view>& keys, std::string_view key) {
  return std::ranges::find(keys, key) != keys.end();
}

std::string in_brackets(std::string_view table) {
  const bool are_many = table == "phase" || table == "impulses" || table == "resets";
  return are_many ? "[[" + std::string(table) + "]]" : "[" + std::string(table) + "]";
}

class Places {
 public:
  explicit Places(FileKind kind) : kind_(kind), tables_(tables_of(kind)) {}

  void check(const TomlValue& file) const {
    for (const auto& [name, value] : file.table()) {
      const auto found = std::ranges::find(tables_, std::string_view(name), &TableKeys::table);
      if (found == tables_.end()) {
        refuse_where_known(name, value, nullptr);
      } else if (value.is_table()) {
        check_table(*found, value);
      } else if (!value.is_array()) {
        refuse_value(*found, value);
      } else {
        for (const TomlValue& entry : value.array()) {
          if (entry.is_table()) check_table(*found, entry);
        }
      }
    }
  }

 private:
  // method = "rk4" for [method] with name = "rk4".
  static void refuse_value(const TableKeys& table, const TomlValue& value) {
    static constexpr std::pair<std::string_view, std::string_view> kMain[] = {{"rhs", "system"},  {"method", "name"},
                                                                              {"output", "file"}, {"net", "start"},
                                                                              {"data", "file"},   {"run", "device"}};
    const auto main = std::ranges::find(kMain, table.table, &std::pair<std::string_view, std::string_view>::first);
    const std::string remedy =
        main == std::end(kMain) || !value.is_text()
            ? std::string{}
            : "write " + std::string(main->second) + " = " + value.describe() + " in " + in_brackets(table.table);
    throw value.error(value.describe(), "a table: " + in_brackets(table.table), remedy);
  }

  void check_table(const TableKeys& table, const TomlValue& written) const {
    for (const auto& [key, value] : written.table()) {
      if (has(table.keys, key)) continue;
      if (table.table == "net" && value.is_table()) {  // [net.NAME]
        check_table(table, value);
        continue;
      }
      refuse_where_known(key, value, &table);
    }
  }

  // `table`: where it stands, or null at the top.
  void refuse_where_known(const std::string& key, const TomlValue& value, const TableKeys* table) const {
    const std::string advice = advise(key, value, table);
    if (advice.empty()) return;
    throw value.error("an unknown key", "one of " + list_text(table == nullptr ? names() : table->keys), advice);
  }

  std::vector<std::string_view> names() const {  // of the tables
    std::vector<std::string_view> all;
    for (const TableKeys& each : tables_) all.push_back(each.table);
    return all;
  }

  std::string advise(const std::string& key, const TomlValue& value, const TableKeys* table) const {
    const std::string_view here = table == nullptr ? std::string_view{} : table->table;
    // Words of this table come before keys of others: what `name` means depends on where it stands.
    if (const std::string advice = other_word(key, value, here, Words::of_this_table); !advice.empty()) return advice;
    if (const std::string advice = other_word(key, value, here, Words::for_this_table); !advice.empty()) return advice;
    const auto same_word = [&](std::string_view own) { return own == key + "s" || std::string(own) + "s" == key; };
    if (table != nullptr && std::ranges::any_of(table->keys, same_word)) return {};  // allow_only() finds it
    const std::string places = places_of(key);
    if (table == nullptr && is_table_or_list(value) &&
        !places.empty()) {  // [times] is [time], not the key of [[impulses]]
      const auto meant = std::ranges::find_if(tables_, [&](const TableKeys& each) { return same_word(each.table); });
      if (meant != tables_.end()) return "write " + in_brackets(meant->table);
    }
    if (!places.empty()) return key + " belongs to " + places;
    if (table != nullptr && value.is_table() && has(names(), key)) return "write " + in_brackets(key);
    if (table != nullptr && !did_you_mean(key, table->keys).empty()) return {};
    if (const std::string advice = other_word(key, value, here, Words::any); !advice.empty()) return advice;
    if (table == nullptr && !did_you_mean(key, names()).empty()) return {};
    for (const TableKeys& other : tables_) {
      if (other.table == "phase") continue;
      const std::string near = did_you_mean(key, other.keys);
      if (!near.empty()) return near.substr(0, near.size() - 1) + " of " + in_brackets(other.table) + "?";
    }
    return {};
  }

  // "[method]", "[rhs] or [output]": the tables that have this key.
  std::string places_of(std::string_view key) const {
    std::string places;
    for (const TableKeys& other : tables_) {
      if (!has(other.keys, key) || other.table == "phase") continue;  // [training] has them too
      places += (places.empty() ? "" : " or ") + in_brackets(other.table);
    }
    return places;
  }

  static bool is_table_or_list(const TomlValue& value) {
    return value.is_table() ||
           (value.is_array() && !value.array().empty() && value.array().front().is_table());  // [[dose]]
  }

  enum class Words { of_this_table, for_this_table, any };  // said here alone; said anywhere, of a key of this table

  std::string other_word(std::string_view key, const TomlValue& value, std::string_view here, Words which) const {
    const auto of_kind =
        kind_ == FileKind::problem ? std::span<const Synonym>(kProblemWords) : std::span<const Synonym>(kTrainingWords);
    const auto find = [&](bool tables) -> std::string {
      for (const auto words : {of_kind, std::span<const Synonym>(kSolverWords)}) {
        for (const Synonym& word : words) {
          if (which == Words::of_this_table ? here.empty() || word.in != here : !word.in.empty()) continue;
          if (which == Words::for_this_table && word.table != here) continue;
          if (word.key.empty() == tables && among(key, word.words)) return advice_of(word, here);
        }
      }
      return {};
    };
    if (!is_table_or_list(value) || !here.empty()) return find(false);
    const std::string as_table = find(true);  // [solver] is [method], [tspan] the span of [time]
    return as_table.empty() ? find(false) : as_table;
  }

  static std::string advice_of(const Synonym& word, std::string_view here) {
    if (word.key.empty()) return "write " + in_brackets(word.table);
    const std::string text = "write " + std::string(word.key) + " = " + std::string(word.example);
    const bool phase = here == "phase" && word.table == "training";
    return word.table == here || phase ? text : text + " in " + in_brackets(word.table);
  }

  FileKind kind_;
  std::vector<TableKeys> tables_;
};

}  // namespace

std::optional<KeyPlace> place_of_word(std::string_view word, FileKind kind) {
  const auto of_kind =
      kind == FileKind::problem ? std::span<const Synonym>(kProblemWords) : std::span<const Synonym>(kTrainingWords);
  for (const bool tables : {false, true}) {
    for (const auto words : {of_kind, std::span<const Synonym>(kSolverWords)}) {
      for (const Synonym& one : words) {
        if (one.in.empty() && one.key.empty() == tables && among(word, one.words)) return KeyPlace{one.table, one.key};
      }
    }
  }
  return std::nullopt;
}

void refuse_misplaced_keys(const TomlValue& file, FileKind kind) { Places(kind).check(file); }

}  // namespace lockstep::cli
