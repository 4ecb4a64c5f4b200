#include "lockstep/agreement/report.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <system_error>

#include "lockstep/agreement/detail/chart.h"
#include "lockstep/agreement/detail/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"

namespace lockstep::agreement {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, "DejaVu Sans", sans-serif; color: #1a1c20; background: #fff; max-width: 820px;
       margin: 2em auto; padding: 0 1.2em; }
.verdict { border-left: 8px solid #888; background: #f4f4f6; padding: .8em 1.1em; font-size: 1.25em; margin: 0; }
.verdict b { display: block; font-size: .75em; letter-spacing: .06em; text-transform: uppercase; }
.verdict.agree { border-color: #1b7f4b; } .verdict.agree b { color: #1b7f4b; }
.verdict.disagree { border-color: #b3261e; } .verdict.disagree b { color: #b3261e; }
.verdict.undecided { border-color: #9a6700; } .verdict.undecided b { color: #9a6700; }
h2 { font-size: 1.1em; margin: 2em 0 .3em; }
p.note { color: #4a4e57; margin: .2em 0 .6em; }
figure { margin: 0 0 1.4em; }
svg { width: 100%; height: auto; font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #33373f; }
svg .title { font-size: 13px; font-weight: 600; }
.grid { stroke: #e3e5ea; } .marker { stroke: #777; stroke-dasharray: 3 3; }
.line { fill: none; stroke-width: 1.8; }
.a { stroke: #1f5fa8; } .b { stroke: #d1571d; stroke-dasharray: 6 3; } .solid-b { stroke: #d1571d; }
.spread { stroke: #82868d; } .limit { stroke: #b3261e; stroke-dasharray: 2 3; } .quiet { stroke: #e0a383; } .farthest { stroke: #ecc8b2; }
table { border-collapse: collapse; font-size: .9em; } td, th { text-align: left; padding: .2em 1em .2em 0;
       border-bottom: 1px solid #e3e5ea; }
)";

const char* word(Outcome outcome) {
  constexpr const char* kWords[] = {"agree", "disagree", "undecided"};
  return kWords[static_cast<int>(outcome)];
}

const char* heading(const Verdict& verdict) {
  if (verdict.same_bits) return "The same bits";
  constexpr const char* kHeadings[] = {"They agree", "They do not agree", "No verdict"};
  return kHeadings[static_cast<int>(verdict.outcome)];
}

std::string figure(const std::string& title, const std::string& note, const std::string& pictures) {
  return "<h2>" + escaped(title) + "</h2>\n<p class='note'>" + escaped(note) + "</p>\n<figure>" + pictures +
         "</figure>\n";
}

std::vector<double> level_of_difference(const Evidence& evidence, std::size_t level) {
  std::vector<double> values;
  for (const TimeDifference& at : evidence.difference.at) values.push_back(at.quantile[level]);
  return values;
}

std::vector<double> level_of_spread(const Evidence& evidence, std::size_t level) {
  std::vector<double> values;
  for (const auto& at : evidence.spread.at) values.push_back(at[level]);
  return values;
}

std::string time_label(const Evidence& evidence) { return evidence.is_time ? "time" : "time after the start"; }

std::string difference_figure(const Evidence& evidence) {
  Chart chart;
  chart.title = "Distance between the two solutions, in units of the solution's own extent";
  chart.x_label = time_label(evidence);
  chart.y_label = "distance";
  chart.y_scale = AxisScale::logarithmic;
  chart.y_floor = evidence.spread.epsilon / 16;
  const std::vector<double> spread = level_of_spread(evidence, kMedian);
  std::vector<double> limit = spread;
  for (double& value : limit) value = value < evidence.spread.decisive() ? kAllowedRatio * value : NAN;
  std::vector<double> tail, farthest;
  for (const TimeDifference& at : evidence.difference.at) {
    tail.push_back(at.tail_of_all);
    farthest.push_back(at.largest);
  }
  const std::vector<double>& t = evidence.times;
  chart.series = {{"farthest", "farthest", t, farthest},
                  {"one in a thousand", "quiet", t, tail},
                  {"typical difference", "solid-b", t, level_of_difference(evidence, kMedian)},
                  {"spread from rounding", "spread", t, spread},
                  {"allowed", "limit", t, limit}};
  if (evidence.spread_tier.decisive_until < t.back()) {
    chart.markers.push_back({evidence.spread_tier.decisive_until, "decisive until here"});
  }
  return figure("Is the difference explained by rounding?",
                "Rounding alone makes trajectories part: the grey line shows how far, from " + evidence.spread.source +
                    ". A faithful port lies near it, and below the dotted line.",
                svg(chart));
}

// A trajectory in both solutions, in the component in which they part, and how far apart they are: what is a mistake
// may be too small to be seen in the solution itself.
std::string departure_pictures(const Ensemble& a, const Ensemble& b, const Evidence& evidence,
                               const Departure& departure) {
  const std::vector<std::string> names = a.component_names();
  const std::vector<double> row_a = a.states(departure.trajectory, 1);
  const std::vector<double> row_b = b.states(departure.trajectory, 1);
  const auto apart = [&](std::size_t time, std::size_t c) {
    const std::size_t at = time * names.size() + c;
    return std::abs(row_b[at] - row_a[at]) / evidence.scale.size[c];
  };
  std::size_t widest = 0;  // component
  for (std::size_t c = 1; c < names.size(); ++c) {
    if (!(apart(departure.time, c) <= apart(departure.time, widest))) widest = c;
  }
  const std::string trajectory = "trajectory " + std::to_string(departure.trajectory);
  Chart both;
  both.title = trajectory + ", component " + names[widest];
  both.x_label = time_label(evidence);
  both.y_label = names[widest];
  both.height = 220;
  Chart distance;
  distance.title = trajectory + ": distance between the two solutions, in units of the solution's own extent";
  distance.x_label = time_label(evidence);
  distance.y_label = "distance";
  distance.y_scale = AxisScale::logarithmic;
  distance.y_floor = evidence.spread.epsilon / 16;
  distance.height = 220;
  Series in_a{a.name(), "a", evidence.times, {}};
  Series in_b{b.name(), "b", evidence.times, {}};
  Series farthest{"this trajectory", "solid-b", evidence.times, {}};
  for (std::size_t k = 0; k < evidence.times.size(); ++k) {
    in_a.y.push_back(row_a[k * names.size() + widest]);
    in_b.y.push_back(row_b[k * names.size() + widest]);
    double most = 0;
    for (std::size_t c = 0; c < names.size(); ++c) most = std::max(most, apart(k, c));
    farthest.y.push_back(most);
  }
  both.series = {std::move(in_a), std::move(in_b)};
  distance.series = {std::move(farthest),
                     {"spread from rounding", "spread", evidence.times, level_of_spread(evidence, kMedian)}};
  if (departure.distance > 0) {
    both.markers.push_back({evidence.times[departure.time], "leaves"});
    distance.markers = both.markers;
  }
  return svg(both) + svg(distance);
}

std::string trajectories_figure(const Ensemble& a, const Ensemble& b, const Evidence& evidence) {
  std::vector<Departure> shown = evidence.difference.first;
  if (shown.empty()) shown.push_back({});
  std::string pictures;
  for (const Departure& departure : std::span(shown).first(std::min<std::size_t>(shown.size(), 2))) {
    pictures += departure_pictures(a, b, evidence, departure);
  }
  const bool any = !evidence.difference.first.empty();
  return figure("The first trajectories that leave",
                any ? "A trajectory leaves when the two solutions are farther apart than ten times the certified "
                      "spread, or a tenth of the solution's extent. Shown in the component in which it is farthest out."
                    : "None leaves; trajectory 0 is shown.",
                pictures);
}

std::string divergence_figure(const Evidence& evidence) {
  std::size_t compared = 1;
  for (const TimeDifference& at : evidence.difference.at) compared = std::max(compared, at.compared);
  Series parted{"parted by then", "solid-b", evidence.times, {}};
  std::size_t so_far = 0;
  for (const TimeDifference& at : evidence.difference.at) {
    so_far += at.departed;
    parted.y.push_back(100 * static_cast<double>(so_far) / static_cast<double>(compared));
  }
  const DivergenceTier& tier = evidence.divergence_tier;
  const std::string none = "No exponential growth was found or stated, so none is predicted to part.";
  if (so_far == 0) {
    return figure(
        "When trajectories part",
        "No trajectory comes to differ by a tenth of the solution's extent. " +
            (tier.asked() ? "Half of them were predicted to by " + moment_text(tier.predicted, evidence.is_time) + "."
                          : none),
        {});
  }
  Chart chart;
  chart.title = "Trajectories that differ by more than a tenth of the solution's extent";
  chart.x_label = time_label(evidence);
  chart.y_label = "per cent of all";
  chart.height = 260;
  chart.series.push_back(std::move(parted));
  chart.series.push_back({"", "quiet", {evidence.times.front(), evidence.times.back()}, {0, 0}});
  if (tier.asked()) {
    chart.markers = {{tier.limit, "half may have parted from here"}, {tier.predicted, "predicted"}};
  }
  return figure("When trajectories part",
                tier.asked() ? "Half of them should have parted " + at_moment(tier.predicted, evidence.is_time) +
                                   ", and may not before " + moment_text(tier.limit, evidence.is_time) + "."
                             : none,
                svg(chart));
}

Series density(const std::string& name, const std::string& style, const std::vector<double>& sorted, double least,
               double most) {
  constexpr int kBins = 60;
  std::vector<double> counts(kBins);
  for (const double v : sorted) {
    const auto bin = static_cast<int>((v - least) / (most - least) * kBins);
    counts[static_cast<std::size_t>(std::clamp(bin, 0, kBins - 1))] += 1;
  }
  Series series{name, style, {}, {}};
  const double width = (most - least) / kBins;
  for (int i = 0; i < kBins; ++i) {
    for (const int end : {0, 1}) {  // steps
      series.x.push_back(least + (i + end) * width);
      series.y.push_back(counts[static_cast<std::size_t>(i)] / (static_cast<double>(sorted.size()) * width));
    }
  }
  return series;
}

std::string distributions_figure(const Ensemble& a, const Ensemble& b, const Evidence& evidence) {
  const Statistics& statistics = evidence.difference.statistics;
  const std::string title = "Distributions on the attractor";
  if (!statistics.asked()) {
    return figure(title, "Not asked: trajectories do not part within the record, or there are fewer than 50.", {});
  }
  const std::vector<std::string> names = a.component_names();
  std::string pictures;
  for (std::size_t c = 0; c < std::min<std::size_t>(names.size(), 4); ++c) {
    const ComponentStatistics& s = statistics.components[c];
    const double least = std::min(s.values_a.front(), s.values_b.front());
    const double most = std::max(s.values_a.back(), s.values_b.back());
    Chart chart;
    chart.title = names[c] + ": mean " + number(s.mean_z) + " and mean square " + number(s.variance_z) +
                  " standard errors apart; Wasserstein-1 " + number(s.wasserstein);
    chart.x_label = names[c] + " in units of its extent";
    chart.y_label = "density";
    chart.height = 230;
    chart.series = {density(a.name(), "a", s.values_a, least, most), density(b.name(), "b", s.values_b, least, most)};
    pictures += svg(chart);
  }
  return figure(title,
                "From " + moment_text(evidence.times[statistics.first_time], evidence.is_time) + " on, " +
                    trajectories_text(statistics.trajectories) +
                    ". They must agree for the two to agree, but wrong solutions may well agree here too.",
                pictures);
}

std::string fields_table(const Verdict& verdict, const Ensemble& a, const Ensemble& b) {
  if (verdict.fields.empty()) return {};
  std::string table = "<h2>What differs in how they were made</h2>\n<table><tr><th></th><th>" + escaped(a.name()) +
                      "</th><th>" + escaped(b.name()) + "</th></tr>\n";
  for (const FieldDifference& field : verdict.fields) {
    table += "<tr><td>" + escaped(field.field) + (field.forbids ? " (forbids a comparison)" : "") + "</td><td>" +
             escaped(field.a) + "</td><td>" + escaped(field.b) + "</td></tr>\n";
  }
  return table + "</table>\n";
}

}  // namespace

std::string report_page(const Ensemble& a, const Ensemble& b, const Verdict& verdict) {
  const StandardArithmetic arithmetic;
  std::string page =
      "<!DOCTYPE html>\n<html lang='en'><head><meta charset='utf-8'>\n<meta name='viewport' "
      "content='width=device-width'>\n<title>" +
      escaped(heading(verdict)) + ": " + escaped(a.name()) + " and " + escaped(b.name()) + "</title>\n<style>" +
      kStyle + "</style></head><body>\n<p class='verdict " + word(verdict.outcome) + "'><b>" + heading(verdict) +
      "</b>" + escaped(verdict.sentence) + "</p>\n";
  if (!verdict.reasons.empty()) {
    page += "<ol>\n";
    for (const std::string& reason : verdict.reasons) page += "<li>" + escaped(reason) + "</li>\n";
    page += "</ol>\n";
  }
  page += "<p class='note'>" + trajectories_text(a.trajectories()) + ", " + std::to_string(a.save_points()) +
          " save points, " + std::to_string(a.components()) + " components.";
  if (verdict.evidence) {
    const Difference& difference = verdict.evidence->difference;
    page += " Bits differ in " + std::to_string(difference.different) + " numbers of " +
            trajectories_text(difference.trajectories) + ".";
  }
  page += "</p>\n";
  if (verdict.evidence && !verdict.same_bits && !verdict.evidence->spread.source.empty()) {
    page += difference_figure(*verdict.evidence) + trajectories_figure(a, b, *verdict.evidence) +
            divergence_figure(*verdict.evidence) + distributions_figure(a, b, *verdict.evidence);
  }
  return page + fields_table(verdict, a, b) + "</body></html>\n";
}

std::filesystem::path write_report(const std::filesystem::path& folder, const Ensemble& a, const Ensemble& b,
                                   const Verdict& verdict, Existing existing) {
  const StandardArithmetic arithmetic;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(ErrorKind::file, {folder.string(), error.message(), "a folder that can be made", {}});
  const std::filesystem::path path = folder / "index.html";
  const std::string page = report_page(a, b, verdict);
  write_file(path, std::as_bytes(std::span(page)), existing);
  return path;
}

}  // namespace lockstep::agreement
