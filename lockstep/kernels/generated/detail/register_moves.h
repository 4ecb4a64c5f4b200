// Moves between registers that all happen at once, as copies one after another.
#pragma once

#include <algorithm>
#include <vector>

namespace lockstep::generated {

struct RegisterMove {
  int from, to;
};

// Registers from `aside` on may be overwritten where no move takes from them; there is one of them.
inline std::vector<RegisterMove> as_copies(std::vector<RegisterMove> moves, int aside) {
  std::vector<RegisterMove> copies;
  const auto is_source = [&](int reg) {
    return std::any_of(moves.begin(), moves.end(), [&](const RegisterMove& move) { return move.from == reg; });
  };
  while (!moves.empty()) {
    // One whose register nothing is still to be taken from; in a ring, one of them steps aside.
    const auto open =
        std::find_if(moves.begin(), moves.end(), [&](const RegisterMove& move) { return !is_source(move.to); });
    if (open != moves.end()) {
      copies.push_back(*open);
      moves.erase(open);
      continue;
    }
    int to = aside;
    while (is_source(to)) ++to;
    const int from = moves.front().from;
    copies.push_back({from, to});
    for (RegisterMove& move : moves) move.from = move.from == from ? to : move.from;
  }
  return copies;
}

}  // namespace lockstep::generated
