// Reads rows of gpu_peak, gpu_bench and gpu_peers.py (JSON lines; files as arguments), prints the answers to the
// questions of gpu_questions.h as one JSON array, and as a table on standard error.
#include <cstdio>
#include <fstream>
#include <string>

#include "gpu_questions.h"

int main(int argc, char** argv) {
  std::vector<nlohmann::json> rows;
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i]);
    if (!file) {
      std::fprintf(stderr, "gpu_verdict: cannot read %s\n", argv[i]);
      return 2;
    }
    // A killed program leaves half a line: it is left out.
    for (std::string line; std::getline(file, line);) {
      nlohmann::json row = nlohmann::json::parse(line, nullptr, false);
      if (row.is_object()) rows.push_back(std::move(row));
    }
  }
  const auto answers = lockstep::benchmarks::answer_questions(rows);
  for (const auto& answer : answers) {
    std::string measured = answer.value("why", "");
    if (answer.contains("measured")) {
      char text[64];
      std::snprintf(text, sizeof text, "%.4g ", answer["measured"].get<double>());
      measured = text + answer.value("unit", "");
    }
    std::fprintf(stderr, "%-13s %-80s %s (%s)\n", answer.value("verdict", "").c_str(),
                 answer.value("question", "").c_str(), measured.c_str(), answer.value("target", "").c_str());
  }
  std::printf("%s\n", nlohmann::ordered_json(answers).dump(1).c_str());
}
