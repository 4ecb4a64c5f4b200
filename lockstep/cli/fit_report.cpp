#include "lockstep/cli/fit_report.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "lockstep/cli/text.h"
#include "lockstep/cli/uneven_spreads.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kMostRows = 12;  // printed of one kind of data
constexpr std::string_view kHead = "data,name,unit,rms,largest,spread,numbers,largest_at";
constexpr std::string_view kInSigma = ",in_sigma";  // of data whose measurements have a standard deviation
constexpr std::string_view kWithin = ",rms_within,spread_within,within";  // of a loss that has a threshold

// The fields of the first line of `text`, which loses it. Quotes may hold commas, line breaks and doubled quotes.
std::vector<std::string> take_line(std::string_view& text) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  while (!text.empty()) {
    const char c = text.front();
    text.remove_prefix(1);
    if (c == '"' && quoted && text.starts_with('"')) {
      fields.back() += c;
      text.remove_prefix(1);
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c == '\n' && !quoted) {
      break;
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

bool read_number(const std::string& text, double& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

// Those of one kind of data that are shown, in their order: of many those of the largest share of the spread.
std::vector<std::size_t> shown_rows(const FitReport& report, std::string_view data, std::size_t& total) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    if (report.rows[i].data == data) rows.push_back(i);
  }
  total = rows.size();
  if (rows.size() <= kMostRows) return rows;
  const auto share = [&](std::size_t i) {
    const double relative = report.rows[i].errors.relative();
    return std::isnan(relative) ? -1 : relative;
  };
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) { return share(a) > share(b); });
  rows.resize(kMostRows);
  std::sort(rows.begin(), rows.end());
  return rows;
}

// Wide characters (m², °C) take one place each.
std::size_t places(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::size_t FitReport::outputs() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(rows, [&](const Row& row) { return row.data == rows.front().data; }));
}

std::string percent_text(double share) {
  if (!std::isfinite(share)) return "-";
  const double percent = 100 * share;
  const bool whole = percent >= 99.5 && percent < 1e6;  // two digits would write 100 as 1e+02
  return (whole ? fixed_text(percent, 0) : rounded_text(percent, 2)) + " %";
}

namespace {

// Of the training data, and varies.
bool counts(const FitReport::Row& row) {
  return row.data == "training" && row.errors.numbers > 0 && !std::isnan(row.errors.relative());
}
bool is_unexplained(const FitReport::Row& row) {
  constexpr double kAsMeasured = 1.5;  // standard deviations
  return counts(row) && row.errors.relative() >= kExplainsLittle && row.errors.usual() >= kExplainsLittle &&
         !(row.errors.in_sigma && *row.errors.in_sigma <= kAsMeasured);
}

// Why, where what is not explained varies less than others that count with it by their units.
std::string spreads_text(const FitReport& report) {
  if (report.has_sigma()) return {};
  double largest = 0, smallest = std::numeric_limits<double>::infinity();
  std::vector<NamedSpread> spreads;
  for (const FitReport::Row& row : report.rows) {
    if (!counts(row)) continue;
    spreads.push_back({row.name, row.errors.spread});
    largest = std::max(largest, row.errors.spread);
    if (is_unexplained(row)) smallest = std::min(smallest, row.errors.spread);
  }
  if (!(largest >= kUneven * smallest)) return {};
  const auto text = uneven_spreads_text(spreads);
  return text ? "; " + *text : "";
}

}  // namespace

Unexplained unexplained(const FitReport& report) {
  constexpr std::size_t kMostNamed = 6;
  Unexplained found{.outputs = {}, .all = true};
  std::size_t count = 0;
  for (const FitReport::Row& row : report.rows) {
    if (!counts(row)) continue;
    if (!is_unexplained(row)) {
      found.all = false;
    } else if (++count <= kMostNamed) {
      found.outputs.push_back(row.name + " " + percent_text(row.errors.relative()));
    }
  }
  if (count > kMostNamed) found.outputs.push_back(std::to_string(count - kMostNamed) + " more");
  found.all = found.all && count > 0;
  return found;
}

std::string Unexplained::text() const {
  std::string text;
  for (const std::string& output : outputs) text += (text.empty() ? "RMS of " : ", ") + output;
  return text + " of the spread";
}

namespace {

// Of outputs that one number has most of the squares of: where, and what takes its weight away.
void append_outliers(const FitReport& report, std::vector<std::string>& lines) {
  constexpr double kMost = 0.5;
  constexpr std::size_t kFewest = 5;  // of fewer numbers one has much of them anyway
  constexpr std::size_t kMostNamed = 3;
  std::string text;
  std::size_t count = 0;
  for (const FitReport::Row& row : report.rows) {
    const train::ColumnErrors& of = row.errors;
    if (row.data != "training" || of.numbers < kFewest || !(of.rms > 0)) continue;
    const double share = of.largest / of.rms * (of.largest / of.rms) / static_cast<double>(of.numbers);
    if (!(share > kMost) || ++count > kMostNamed) continue;
    text += (count == 1 ? "" : ", ") + row.name + (row.largest_at.empty() ? "" : " at " + row.largest_at) + " has " +
            percent_text(share) + " of the squares of " + row.name;
  }
  if (count == 0) return;
  lines.push_back("one number has most of the sum of squares: " + text +
                  "; to take its weight away leave it out (an empty field, NaN), or give it a larger sigma" +
                  (report.bounded_loss.empty() ? "" : "; loss = \"" + report.bounded_loss + "\" bounds it"));
}

}  // namespace

std::vector<std::string> fit_notes(const FitReport& report) {
  const Unexplained found = unexplained(report);
  std::vector<std::string> lines;
  if (!found.outputs.empty()) {
    lines.push_back("the fit explains little of the data, or nothing: " + found.text() +
                    ", where their mean has 100 %" + spreads_text(report));
  }
  if (!report.beyond_sigma.empty()) {
    lines.push_back("the model does not describe the data within the stated sigma: RMS of " +
                    list_text(std::vector<std::string_view>(report.beyond_sigma.begin(), report.beyond_sigma.end())));
  }
  if (lines.empty()) return lines;
  append_outliers(report, lines);
  if (report.exact_starts) lines.push_back(kNoisyStarts);
  return lines;
}

bool FitReport::has_threshold() const {
  return std::ranges::any_of(rows, [](const Row& row) { return row.errors.within.has_value(); });
}

bool FitReport::has_sigma() const {
  return std::ranges::any_of(rows, [](const Row& row) { return row.errors.in_sigma.has_value(); });
}

std::string to_csv(const FitReport& report) {
  std::string text(kHead);
  if (report.has_sigma()) text += kInSigma;
  if (report.has_threshold()) text += kWithin;
  text += '\n';
  for (const FitReport::Row& row : report.rows) {
    text += row.data + "," + csv_field(row.name) + "," + csv_field(row.unit);
    for (const double number : {row.errors.rms, row.errors.largest, row.errors.spread})
      text += "," + number_text(number);
    text += "," + std::to_string(row.errors.numbers) + "," + csv_field(row.largest_at);
    if (report.has_sigma()) text += "," + (row.errors.in_sigma ? number_text(*row.errors.in_sigma) : std::string());
    if (const auto& within = row.errors.within) {
      text += "," + (std::isfinite(within->rms) ? number_text(within->rms) : "nan") + "," +
              number_text(within->spread) + "," + std::to_string(within->numbers);
    } else if (report.has_threshold()) {
      text += ",,,";
    }
    text += '\n';
  }
  return text;
}

void store(const FitReport& report, std::map<std::string, std::string>& metadata) {
  if (!report.empty()) metadata[kErrorsKey] = to_csv(report);
  if (!report.worst.empty()) metadata[kWorstKey] = report.worst;
  if (!report.outliers.empty()) metadata[kOutliersKey] = report.outliers;
}

std::optional<FitReport> parse_fit_report(std::string_view csv, std::string_view worst, std::string_view outliers) {
  constexpr std::size_t kOfWithin = 3;  // columns
  FitReport report;
  report.worst = worst;
  report.outliers = outliers;
  if (!csv.starts_with(kHead)) return std::nullopt;
  const std::vector<std::string> names = take_line(csv);
  const bool has_within = names.back() == "within";
  const std::size_t columns = names.size(), plain = columns - (has_within ? kOfWithin : 0);
  while (!csv.empty()) {
    const std::vector<std::string> fields = take_line(csv);
    FitReport::Row row;
    double numbers = 0;
    if (fields.size() != columns || plain < 8 || plain > 9 || !read_number(fields[3], row.errors.rms) ||
        !read_number(fields[4], row.errors.largest) || !read_number(fields[5], row.errors.spread) ||
        !read_number(fields[6], numbers) || !(numbers >= 0) || numbers > 1e18) {
      return std::nullopt;
    }
    row.data = fields[0];
    row.name = fields[1];
    row.unit = fields[2];
    row.errors.numbers = static_cast<std::size_t>(numbers);
    row.largest_at = fields[7];
    if (has_within && !fields[plain].empty()) {
      train::ErrorsWithin& within = row.errors.within.emplace();
      double count = 0;
      if (!read_number(fields[plain], within.rms) || !read_number(fields[plain + 1], within.spread) ||
          !read_number(fields[plain + 2], count) || !(count >= 0) || count > numbers) {
        return std::nullopt;
      }
      within.numbers = static_cast<std::size_t>(count);
    }
    if (plain == 9 && !fields[8].empty() && !read_number(fields[8], row.errors.in_sigma.emplace())) {
      return std::nullopt;
    }
    report.rows.push_back(std::move(row));
  }
  return report;
}

std::vector<std::string> table_lines(const FitReport& report) {
  if (report.empty()) return {};
  using Cells = std::array<std::string, 9>;
  constexpr std::size_t kSigmaCell = 4, kWithinCell = 5, kBeyondCell = 6;
  std::vector<Cells> cells{{"error over", "", "RMS", "of spread", "in sigma", "RMS within", "beyond", "largest", "at"}};
  for (const char* data : {"training", "validation"}) {
    std::size_t total = 0;
    const std::vector<std::size_t> rows = shown_rows(report, data, total);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const FitReport::Row& row = report.rows[rows[i]];
      const std::string unit = row.unit.empty() ? "" : " " + row.unit;
      if (row.errors.numbers == 0) {
        cells.push_back({i == 0 ? data : "", row.name, "-", "-", "-", "-", "-", "-", ""});
        continue;
      }
      const auto& within = row.errors.within;
      cells.push_back({i == 0 ? data : "", row.name, rounded_text(row.errors.rms, 3) + unit,
                       percent_text(row.errors.relative()),
                       row.errors.in_sigma ? rounded_text(*row.errors.in_sigma, 3) : std::string(),
                       within && within->numbers > 0 ? rounded_text(within->rms, 3) + unit : std::string("-"),
                       within ? count_text(row.errors.numbers - within->numbers) : std::string("-"),
                       rounded_text(row.errors.largest, 3) + unit, row.largest_at});
    }
    if (rows.size() < total) {
      cells.push_back({"", "the largest " + std::to_string(rows.size()) + " of " + std::to_string(total), "", "", "",
                       "", "", "", ""});
    }
  }
  std::array<std::size_t, std::tuple_size_v<Cells>> width{};
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < width.size(); ++i) width[i] = std::max(width[i], places(row[i]));
  }
  std::vector<std::string> lines;
  for (const auto& row : cells) {
    std::string line;
    for (std::size_t i = 0; i < width.size(); ++i) {
      const std::string room(width[i] - places(row[i]), ' ');
      if (i == kSigmaCell && !report.has_sigma()) continue;
      if ((i == kWithinCell || i == kBeyondCell) && !report.has_threshold()) continue;
      const bool is_number = i >= 2 && i + 1 < width.size();
      line += (i == 0 ? "" : "  ") + (is_number ? room + row[i] : row[i] + room);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  if (!report.worst.empty()) lines.push_back("worst: " + report.worst);
  if (!report.outliers.empty()) lines.push_back(report.outliers);
  return lines;
}

}  // namespace lockstep::cli
