// Files in memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace lockstep::nn::detail {

// The whole file. Throws Error (file) when the path is missing, no regular file, or not readable; `expected` is what
// messages say it should be.
std::vector<std::byte> read_bytes(const std::filesystem::path& path, const char* expected = "a model file");

// The first and last `each` bytes, or all of a file no longer than both; errors as above.
std::vector<std::byte> read_ends(const std::filesystem::path& path, std::size_t each);

}  // namespace lockstep::nn::detail
