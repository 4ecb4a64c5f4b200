// Checks of a flag's value whose messages say what was found and what is expected, like the library's own errors.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace lockstep::cli {

// Counts are stored as int64.
inline constexpr auto kMostWholeNumber = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

CLI::Validator one_of(const std::vector<std::string>& choices);
// Also one with an exponent, 1e6: Option::transform() puts the plain number in its place, check() would not.
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most = kMostWholeNumber);
CLI::Validator file_name();  // not "", which a variable of a shell is that was never set
CLI::Validator any_number();
CLI::Validator finite_number();
CLI::Validator positive_number();

}  // namespace lockstep::cli
