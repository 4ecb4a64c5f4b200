#include "lockstep/cli/uneven_spreads.h"

#include "lockstep/cli/text.h"

namespace lockstep::cli {

std::optional<std::string> uneven_spreads_text(std::span<const NamedSpread> columns, double least_ratio) {
  constexpr std::size_t kMostNamed = 6;
  const NamedSpread *least = nullptr, *most = nullptr;
  std::string sigma;
  for (const NamedSpread& column : columns) {
    if (!(column.spread > 0)) continue;
    if (least == nullptr || column.spread < least->spread) least = &column;
    if (most == nullptr || column.spread > most->spread) most = &column;
    sigma += (sigma.empty() ? "" : ", ") + toml_key(column.name) + " = " + rounded_text(column.spread, 2);
  }
  if (least == nullptr || most->spread < least_ratio * least->spread) return std::nullopt;
  return most->name + " varies " + rounded_text(most->spread / least->spread, 2) + " times as much as " + least->name +
         ", and the loss is in their own units: " + least->name + " has little of it; in [data] " +
         (columns.size() <= kMostNamed ? "sigma = { " + sigma + " }" : "sigma of each, its spread,") +
         " counts them alike";
}

}  // namespace lockstep::cli
