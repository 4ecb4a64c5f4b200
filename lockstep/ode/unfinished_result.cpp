#include "lockstep/ode/unfinished_result.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/pending_file.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/result_file.h"

namespace lockstep::ode {
namespace {

namespace fs = std::filesystem;
namespace names = result_names;
constexpr std::size_t kPieceRows = std::size_t{1} << 16;

void add_stored(const ResultFile& file, UnfinishedResult& result) {
  for (std::size_t first = 0; first < file.trajectories(); first += kPieceRows) {
    for (const TrajectoryRecord& record : file.records(first, std::min(kPieceRows, file.trajectories() - first))) {
      if (record.status == Status::cancelled) continue;
      result.totals.add(record);
      ++result.stored;
    }
  }
}

// What differs, each as the file has it and as it would be now.
class Differences {
 public:
  void compare(const std::string& name, const std::string& then, const std::string& now) {
    if (then == now) return;
    add(name + " " + then, name + " " + now);
  }
  void add(const std::string& then, const std::string& now) {
    append(then_, then);
    append(now_, now);
  }
  bool empty() const { return then_.empty(); }
  const std::string& then() const { return then_; }
  const std::string& now() const { return now_; }

 private:
  static void append(std::string& text, const std::string& more) { text += (text.empty() ? "" : ", ") + more; }
  std::string then_, now_;
};

std::string joined(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) list += (list.empty() ? "" : " ") + word;
  return list;
}

std::string text(const std::optional<hdf5::AttributeValue>& value) {
  if (!value) return "none";
  if (const auto* string = std::get_if<std::string>(&*value)) return *string;
  if (const auto* integer = std::get_if<std::int64_t>(&*value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&*value)) return number_text(*number);
  std::string list;
  const auto add = [&list](const std::string& item) { list += (list.empty() ? "" : " ") + item; };
  if (const auto* strings = std::get_if<std::vector<std::string>>(&*value)) std::ranges::for_each(*strings, add);
  if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&*value)) {
    for (const std::int64_t item : *integers) add(std::to_string(item));
  }
  if (const auto* numbers = std::get_if<std::vector<double>>(&*value)) {
    for (const double item : *numbers) add(number_text(item));
  }
  return "[" + list + "]";
}

// A line for each equation: which the other has not.
void compare_equations(const std::string& then, const std::string& now, Differences& differences) {
  const auto lines_of = [](const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  };
  const auto others = [](const std::vector<std::string>& lines, const std::vector<std::string>& besides) {
    std::string list;
    for (const std::string& line : lines) {
      if (std::ranges::find(besides, line) == besides.end()) list += (list.empty() ? "" : ", ") + line;
    }
    return list.empty() ? std::string("no other equation") : list;
  };
  const std::vector<std::string> before = lines_of(then), after = lines_of(now);
  if (before != after) differences.add(others(before, after), others(after, before));
}

std::optional<hdf5::AttributeValue> find(const Attributes& attributes, const std::string& name) {
  for (const auto& [key, value] : attributes) {
    if (key == name) return value;
  }
  return std::nullopt;
}

// Sizes are equal. Names the first number that is not.
void compare_numbers(const ResultFile& file, const Problem& problem, const std::vector<std::size_t>& selection,
                     Differences& differences) {
  const std::size_t components = file.components();
  const std::size_t all = problem.rhs->components();
  std::vector<double> now;
  for (std::size_t first = 0; first < file.trajectories(); first += kPieceRows) {
    const std::size_t count = std::min(kPieceRows, file.trajectories() - first);
    const std::vector<double> then = file.initial_states(first, count);
    now.clear();
    for (std::size_t i = first; i < first + count; ++i) {
      for (std::size_t c = 0; c < components; ++c) {
        now.push_back(problem.initial_states[i * all + (selection.empty() ? c : selection[c])]);
      }
    }
    const auto [a, b] = std::ranges::mismatch(then, now);
    if (a == then.end()) continue;
    const std::size_t at = first * components + static_cast<std::size_t>(a - then.begin());
    const std::string name =
        "initial " + file.component_names()[at % components] + " of trajectory " + std::to_string(at / components);
    differences.compare(name, number_text(*a), number_text(*b));
    break;
  }
  const std::size_t own = std::max<std::size_t>(file.trajectories(), 1);
  for (std::size_t i = 0; i < (file.times_per_trajectory() ? own : 1); ++i) {
    const std::vector<double> then = file.times(i);
    const auto [a, b] = std::ranges::mismatch(then, std::span(problem.save_times_of(i), then.size()));
    if (a == then.end()) continue;
    const std::string name = "save point " + std::to_string(a - then.begin()) +
                             (file.times_per_trajectory() ? " of trajectory " + std::to_string(i) : "");
    differences.compare(name, number_text(*a), number_text(*b));
    break;
  }
  for (std::size_t i = 0; i < (file.parameters_per_trajectory() ? own : 1); ++i) {
    const std::vector<double> then = file.parameters(i);
    const auto [a, b] = std::ranges::mismatch(then, std::span(problem.parameters_of(i), then.size()));
    if (a == then.end()) continue;
    const std::string name = file.parameter_names()[static_cast<std::size_t>(a - then.begin())] +
                             (file.parameters_per_trajectory() ? " of trajectory " + std::to_string(i) : "");
    differences.compare(name, number_text(*a), number_text(*b));
    break;
  }
}

// Of one form in both. Names the first that is another, and what of it.
void compare_impulses(const ResultFile& file, const Problem& problem, Differences& differences) {
  const ImpulseForm& form = file.impulse_form();
  const std::size_t rows = form.none() ? 0 : form.differ() ? file.trajectories() : 1;
  for (std::size_t first = 0; first < rows; first += kPieceRows) {
    const std::size_t count = std::min(kPieceRows, rows - first);
    const Impulses then = file.impulses(first, count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<const Impulse> now = problem.impulses_of(first + i), before = then.of(i);
      const std::string of = form.differ() ? " of trajectory " + std::to_string(first + i) : "";
      if (before.size() != now.size())
        return differences.compare("impulses" + of, std::to_string(before.size()), std::to_string(now.size()));
      for (std::size_t k = 0; k < now.size(); ++k) {
        const Impulse& was = before[k];
        const std::string name = "impulse " + std::to_string(k) + of + ": ";
        differences.compare(name + "time", number_text(was.time), number_text(now[k].time));
        differences.compare(name + "component", std::to_string(was.component), std::to_string(now[k].component));
        differences.compare(name + "change", number_text(was.change), number_text(now[k].change));
        differences.compare(name + "factor", number_text(was.factor), number_text(now[k].factor));
        if (!differences.empty()) return;
      }
    }
  }
}

// Where `path` is the target or its NAME.part.
UnfinishedResult look_at(const fs::path& path, const fs::path& target) {
  const ResultFile file(path);
  if (!file.index_files().empty()) {
    throw Error(ErrorKind::file, {target.string(), "an index of other files", "a file with numbers of its own",
                                  "continue the files it names"});
  }
  UnfinishedResult result;
  result.file = file.path();
  result.trajectories = file.trajectories();
  add_stored(file, result);
  if (file.attribute("packed") && !result.complete()) {
    throw Error(ErrorKind::file, {target.string(), "a packed file", "one as lockstep solve writes it",
                                  "begin anew under another name or with --overwrite instead of --resume"});
  }
  return result;
}

}  // namespace

std::optional<UnfinishedResult> find_unfinished(const fs::path& target) {
  const StandardReading arithmetic;
  std::error_code ignored;
  const fs::path part = PendingFile::unfinished_name(target);
  const std::uintmax_t size = fs::file_size(part, ignored);
  if (ignored || size == 0) return find_named(target);
  try {
    return look_at(part, target);
  } catch (const Error& error) {
    throw Error(ErrorKind::file, {error.field(), error.found(), "a file that can be continued",
                                  "remove " + part.string() + " to begin anew"});
  }
}

std::optional<UnfinishedResult> find_named(const fs::path& target) {
  const StandardReading arithmetic;
  if (!ResultFile::recognises(target)) return std::nullopt;
  UnfinishedResult result = look_at(target, target);
  result.has_name = true;
  return result;
}

void check_continues(const UnfinishedResult& left, const Problem& problem, Precision precision,
                     const ResultMetadata& metadata) {
  const ResultFile file(left.file);
  Differences differences;
  const auto size = [](std::size_t number) { return std::to_string(number); };
  differences.compare("precision", std::string(to_string(file.precision())), std::string(to_string(precision)));
  const ResultMetadata::PartOf part_of = metadata.part_of.value_or(ResultMetadata::PartOf{});
  differences.compare("first trajectory", size(file.first_trajectory()), size(part_of.first_trajectory));
  differences.compare("trajectories", size(file.trajectories()), size(problem.trajectories()));
  differences.compare("save points", size(file.save_points()), size(problem.save_points()));
  differences.compare("components", joined(file.component_names()), joined(metadata.component_names));
  const std::size_t parameters = problem.rhs->parameters();
  differences.compare("parameters", size(file.parameter_names().size()), size(parameters));
  const auto sharing = [](bool own) { return std::string(own ? "each trajectory's own" : "shared"); };
  differences.compare("save times", sharing(file.times_per_trajectory()), sharing(problem.save_times_per_trajectory));
  differences.compare(
      "parameter values", sharing(file.parameters_per_trajectory()),
      sharing(parameters > 0 && (problem.parameters.size() != parameters || part_of.parameters_per_trajectory)));
  differences.compare("impulses", file.impulse_form().text(), part_of.impulses.value_or(impulse_form(problem)).text());
  if (differences.empty()) compare_numbers(file, problem, metadata.components, differences);
  if (differences.empty()) compare_impulses(file, problem, differences);
  const bool numbers_differ = !differences.empty();
  const auto digest = find(metadata.attributes, names::kProblemDigest);
  const bool same_problem = digest && file.attribute(names::kProblemDigest) == digest;
  for (const std::string& name : metadata.must_match) {
    // A digest says less than the numbers it stands for, and more than words.
    if (numbers_differ && name == names::kProblemDigest) continue;
    if (same_problem && std::ranges::find(names::kProblemInWords, name) != names::kProblemInWords.end()) continue;
    if (name == "precision") continue;
    differences.compare(name, text(file.attribute(name)), text(find(metadata.attributes, name)));
  }
  if (!same_problem)
    compare_equations(text(file.attribute("equations")), text(find(metadata.attributes, "equations")), differences);
  if (differences.empty()) return;
  throw Error(ErrorKind::file,
              {left.file.string(), "results of another run: " + differences.then(), differences.now(),
               "undo the change to continue that run, or begin anew under another name or with --overwrite instead of "
               "--resume"});
}

}  // namespace lockstep::ode
