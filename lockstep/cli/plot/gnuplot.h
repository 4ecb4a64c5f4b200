// Gnuplot as a child process: a script in, a picture out.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace lockstep::cli {

enum class PictureFormat { png, svg };

// In pixels; SVG pictures scale it down to half.
struct PictureSize {
  int width = 1600;
  int height = 1000;
};

// A text as gnuplot reads it: in single quotes, which it does not interpret.
std::string gnuplot_text(std::string_view text);

// Draws `script` (everything but terminal and output) into `target`, which is replaced when it exists. Throws Error:
// (unsupported) when gnuplot is not installed, (file) when it cannot write or fails, with what it said.
void draw(const std::string& script, const std::filesystem::path& target, PictureFormat format, PictureSize size);

}  // namespace lockstep::cli
