// A whole file in memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

namespace lockstep::nn::detail {

// Throws Error (file) when the path is missing, no regular file, or not readable.
std::vector<std::byte> read_bytes(const std::filesystem::path& path);

}  // namespace lockstep::nn::detail
