#include "lockstep/cli/plot/gnuplot.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/pending_file.h"
#include "lockstep/core/temporary_names.h"

extern char** environ;

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

// A folder of our own for the script and what gnuplot says; gone with this object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code ignored;
    fs::path base = fs::temp_directory_path(ignored);
    if (base.empty()) base = "/tmp";
    std::string name = (base / "lockstep-plot-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw Error(ErrorKind::file,
                  {base.string(), std::generic_category().message(errno), "a writable folder", "set TMPDIR to one"});
    }
    path_ = name;
    for (const fs::path& one : {path_, picture(), script(), log()}) noted_.emplace_back(one);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path picture() const { return path_ / "picture"; }
  fs::path script() const { return path_ / "script.gp"; }
  fs::path log() const { return path_ / "log.txt"; }

 private:
  fs::path path_;
  std::vector<TemporaryName> noted_;
};

std::string content(const fs::path& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// Runs gnuplot on the script; both its outputs go to `log`. Its exit code, or -1 when a signal ended it.
int run_gnuplot(const fs::path& script, const fs::path& log) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  std::string program = "gnuplot";
  std::string argument = script.string();
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    throw Error(ErrorKind::unsupported,
                {"plot", "no gnuplot on this machine (" + std::generic_category().message(failed) + ")",
                 "gnuplot 5 or later", "install it, on Debian and Ubuntu with: apt install gnuplot-nox"});
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string terminal(PictureFormat format, PictureSize size) {
  if (format == PictureFormat::png) {
    return "set terminal pngcairo noenhanced size " + std::to_string(size.width) + "," + std::to_string(size.height) +
           " font 'DejaVu Sans,20' linewidth 2 background '#ffffff'\n";
  }
  return "set terminal svg noenhanced size " + std::to_string(size.width / 2) + "," + std::to_string(size.height / 2) +
         " font 'DejaVu Sans,10' linewidth 1 background '#ffffff'\n";
}

// Where a disk is full gnuplot says nothing and ends well.
bool is_whole(const fs::path& picture, PictureFormat format) {
  const std::string text = content(picture);
  if (format == PictureFormat::png) return text.ends_with(std::string_view("IEND\xae\x42\x60\x82", 8));
  return text.find("</svg>", text.size() - std::min<std::size_t>(text.size(), 16)) != text.npos;
}

// Viewers smooth an image of few pixels, whose cells are numbers apart.
void keep_cells_sharp(const fs::path& picture) {
  constexpr std::string_view kImage = "<image ", kStyle = "style='image-rendering:pixelated' ";
  std::string text = content(picture);
  std::size_t found = 0;
  for (std::size_t at = text.find(kImage); at != std::string::npos; at = text.find(kImage, at + 1), ++found) {
    text.insert(at + kImage.size(), kStyle);
  }
  if (found == 0) return;
  std::ofstream stream(picture, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.flush();
  if (!stream) {
    throw Error(ErrorKind::file,
                {picture.string(), "no room to write", "a picture", "free space or choose another disk"});
  }
}

}  // namespace

std::string gnuplot_text(std::string_view text) {
  std::string result = "'";
  for (const char c : one_line(text)) result += c == '\'' ? std::string("''") : std::string(1, c);
  return result + "'";
}

void draw(const std::string& script, const fs::path& target, PictureFormat format, PictureSize size) {
  PendingFile picture(target, Existing::replace);
  const ScratchFolder scratch;
  // The picture's name may hold what a script's text may not.
  const fs::path output = scratch.picture();
  fs::create_symlink(fs::absolute(picture.temporary()), output);
  const fs::path script_file = scratch.script();
  const fs::path log = scratch.log();
  {
    std::ofstream stream(script_file);
    stream << terminal(format, size) << "set output " << gnuplot_text(output.string()) << "\n"
           << script << "\nunset output\n";
    stream.flush();
    if (!stream) {
      throw Error(ErrorKind::file, {script_file.string(), "no room to write", "a writable folder", "set TMPDIR"});
    }
  }
  const int exit_code = run_gnuplot(script_file, log);
  std::error_code ignored;
  if (exit_code != 0 || fs::file_size(picture.temporary(), ignored) == 0) {
    const std::string said = one_line(content(log));
    throw Error(ErrorKind::file,
                {target.string(), "gnuplot failed (" + (said.empty() ? "no message" : said.substr(0, 300)) + ")",
                 "a picture", "check that gnuplot has its pngcairo and svg terminals"});
  }
  if (!is_whole(picture.temporary(), format)) {
    throw Error(ErrorKind::file,
                {target.string(), "a picture that breaks off", "all of it", "free space or choose another disk"});
  }
  if (format == PictureFormat::svg) keep_cells_sharp(picture.temporary());
  picture.publish();
}

}  // namespace lockstep::cli
