// The commands of the tool. Each adds its flags to the command line and says what to run when it is chosen.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace lockstep::cli {

// Exit codes. A signal's is 128 plus its number.
inline constexpr int kSuccess = 0;
inline constexpr int kDifferent = 1;  // validate: the files do not agree
inline constexpr int kFailure = 2;    // an error, told on standard error; validate: no verdict
inline constexpr int kFailedTrajectories = 3;  // solve --strict: some failed; the file is whole

// Runs after the command line was read as a whole. Throws Error.
struct Chosen {
  std::function<int()> run;
  std::string command_line;  // as typed, for provenance
};

void add_solve(CLI::App& app, Chosen& chosen);
void add_train(CLI::App& app, Chosen& chosen);
void add_evaluate(CLI::App& app, Chosen& chosen);
void add_import(CLI::App& app, Chosen& chosen);
void add_export(CLI::App& app, Chosen& chosen);
void add_compile(CLI::App& app, Chosen& chosen);
void add_validate(CLI::App& app, Chosen& chosen);
void add_merge(CLI::App& app, Chosen& chosen);
void add_pack(CLI::App& app, Chosen& chosen);
void add_plot(CLI::App& app, Chosen& chosen);
void add_info(CLI::App& app, Chosen& chosen);
void add_explain(CLI::App& app, Chosen& chosen);
void add_calibrate(CLI::App& app, Chosen& chosen);

}  // namespace lockstep::cli
