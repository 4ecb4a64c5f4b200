#include "bindings/python/impulses.h"

#include <algorithm>
#include <string_view>

#include "lockstep/cli/ensemble_impulses.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"

namespace lockstep::python {
namespace {

constexpr std::size_t kWidth = 5;  // of a row

// Which of the components each name is.
std::vector<std::size_t> places_of(const std::vector<std::string>& names, const std::vector<std::string>& components) {
  const std::vector<std::string_view> known(components.begin(), components.end());
  std::vector<std::size_t> places;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end()) {
      cli::refuse("impulses.component", '"' + name + '"', "one of " + cli::list_text(known),
                  cli::did_you_mean(name, known));
    }
    places.push_back(static_cast<std::size_t>(found - known.begin()));
  }
  return places;
}

void require_below(const char* field, double found, std::size_t count, const char* what) {
  if (found < static_cast<double>(count)) return;
  cli::refuse(field, cli::count_text(static_cast<std::size_t>(found)),
              std::string(what) + " from 0 to " + cli::count_text(count - 1));
}

}  // namespace

ode::Impulses read_impulses(std::span<const double> rows, const std::vector<std::string>& names,
                            const std::vector<std::string>& components, std::size_t trajectories,
                            std::span<const double> starts) {
  const std::vector<std::size_t> places = places_of(names, components);
  const std::size_t count = rows.size() / kWidth;
  std::vector<ode::Impulse> all;
  bool differ = false;
  std::vector<std::size_t> first(trajectories + 1);  // how many each has, then where those begin
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const double> row = rows.subspan(i * kWidth, kWidth);
    if (row[1] >= 0) require_below("impulses.component", row[1], components.size(), "a component");
    require_below("impulses.trajectory", row[4], trajectories, "a trajectory");
    const std::size_t component =
        row[1] < 0 ? places[static_cast<std::size_t>(-1 - row[1])] : static_cast<std::size_t>(row[1]);
    all.push_back({row[0], component, row[2], row[3]});
    differ = differ || row[4] >= 0;
  }
  if (!differ) {
    cli::order_impulses(all, starts.size() == 1 ? starts[0] : 0);
    return {std::move(all), {}};
  }
  const auto for_each = [&](const auto& take) {
    for (std::size_t i = 0; i < count; ++i) {
      const double of = rows[i * kWidth + 4];
      if (of >= 0) {
        take(static_cast<std::size_t>(of), i);
      } else {
        for (std::size_t trajectory = 0; trajectory < trajectories; ++trajectory) take(trajectory, i);
      }
    }
  };
  for_each([&](std::size_t trajectory, std::size_t) { ++first[trajectory + 1]; });
  for (std::size_t i = 0; i < trajectories; ++i) first[i + 1] += first[i];
  ode::Impulses given{std::vector<ode::Impulse>(first.back()), first};
  for_each([&](std::size_t trajectory, std::size_t i) { given.impulses[first[trajectory]++] = all[i]; });
  for (std::size_t i = 0; i < trajectories; ++i) {
    const std::size_t begin = given.first[i], own = given.first[i + 1] - begin;
    cli::order_impulses(std::span(given.impulses).subspan(begin, own), starts[starts.size() == 1 ? 0 : i]);
  }
  return given;
}

}  // namespace lockstep::python
