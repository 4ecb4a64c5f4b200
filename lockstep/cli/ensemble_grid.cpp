#include "lockstep/cli/ensemble_grid.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "lockstep/cli/ensemble_files.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"

namespace lockstep::cli {

std::string grid_text(const GridShape& shape) {
  std::string text;
  for (const auto& [name, count] : shape) text += (text.empty() ? "" : " x ") + name + ' ' + count_text(count);
  return text;
}

GridShape stored_grid(const ode::ResultFile& file) {
  const auto names = file.attribute(kGridAttribute), points = file.attribute(kGridPointsAttribute);
  const auto* words = names ? std::get_if<std::vector<std::string>>(&*names) : nullptr;
  const auto* counts = points ? std::get_if<std::vector<std::int64_t>>(&*points) : nullptr;
  if (words == nullptr || counts == nullptr || words->size() != counts->size()) return {};
  GridShape shape;
  for (std::size_t i = 0; i < words->size(); ++i) shape.emplace_back((*words)[i], (*counts)[i]);
  return shape;
}

Grid::Grid(const std::vector<GridAxis>& axes, const std::vector<std::string>& components,
           const std::vector<std::string>& parameters) {
  trajectories_ = axes.empty() ? 0 : 1;
  for (const GridAxis& axis : axes) {
    const std::string& where = axis.where;
    const auto component = std::ranges::find(components, axis.name),
               parameter = std::ranges::find(parameters, axis.name);
    const bool is_component = component != components.end(), is_parameter = parameter != parameters.end();
    if (is_component == is_parameter) {
      std::vector<std::string_view> known(components.begin(), components.end());
      known.insert(known.end(), parameters.begin(), parameters.end());
      refuse(where, is_component ? "the name of a component and of a parameter" : "neither a component nor a parameter",
             is_component ? "a name of one of them" : "one of " + list_text(known),
             is_component ? "call one of them otherwise in [rhs]" : did_you_mean(axis.name, known));
    }
    axes_.push_back(
        {axis.name, where, is_component ? Kind::component : Kind::parameter,
         static_cast<std::size_t>(is_component ? component - components.begin() : parameter - parameters.begin()),
         load_files(axis.values, "", Filled::single_column)});
    const std::size_t count = axes_.back().count = listed_rows(axes_.back().values).value_or(0);
    if (count == 0) refuse(where, "no values", "at least one", "remove " + axis.name + " from the grid");
    trajectories_ = trajectories_ > std::numeric_limits<std::size_t>::max() / count ? 0 : trajectories_ * count;
  }
}

GridShape Grid::shape() const {
  GridShape shape;
  for (const Axis& axis : axes_) shape.emplace_back(axis.name, axis.count);
  return shape;
}

bool Grid::has(Kind kind) const { return std::ranges::find(axes_, kind, &Axis::kind) != axes_.end(); }

ColumnNames Grid::without_axes(Kind kind, ColumnNames columns, const EnsembleValues* values) const {
  const auto* named = values == nullptr ? nullptr : std::get_if<EnsembleValues::Named>(&values->source);
  for (const Axis& axis : axes_) {
    if (axis.kind != kind) continue;
    if (named != nullptr && std::ranges::find(named->names, axis.name) != named->names.end()) {
      refuse(axis.where, "a " + columns.what + " that has a value of its own", "one place for each",
             "remove it here, or from " + values->where);
    }
    columns.defaults.resize(columns.names.size());
    columns.defaults[axis.column] = 0;
  }
  return columns;
}

std::vector<double> Grid::fill(Kind kind, std::vector<double> rows, std::size_t columns) const {
  if (!has(kind)) return rows;
  if (rows.size() == columns) rows = repeated(std::move(rows), trajectories_);
  std::size_t inner = trajectories_;  // consecutive trajectories of one value
  for (const Axis& axis : axes_) {
    inner /= axis.count;
    if (axis.kind != kind) continue;
    const std::vector<double> values = draw(axis.values, axis.count, {"axis of the grid", {axis.name}, {}}, {}).values;
    for (std::size_t i = 0; i < trajectories_; ++i) rows[i * columns + axis.column] = values[i / inner % axis.count];
  }
  return rows;
}

}  // namespace lockstep::cli
