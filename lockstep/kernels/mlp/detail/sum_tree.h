// Which thread adds up what, where sums over a batch run in a fixed tree and threads exchange what they have once.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep::mlp {

// The tree: rows 0 .. groups - 1 are added in halves (row i + half to row i), until row 0 holds all. A thread computes
// the rows of its share, adds what it can without the others', and publishes what is left; then every thread can make
// the additions in common.
struct SumTree {
  struct Addition {
    std::uint32_t to, from;
  };
  struct Share {
    std::vector<std::uint32_t> groups;     // whose sums are this thread's rows, in this order
    std::vector<Addition> additions;       // of rows of this thread, counted as in `groups`
    std::vector<std::uint32_t> published;  // rows of this thread that are left, counted likewise
  };
  std::vector<Share> shares;     // [thread]
  std::vector<Addition> common;  // of rows of the tree
};

// sizes[group]: what its sum costs. Shares are whole branches as far as they can be, and as equal as branches allow.
SumTree make_sum_tree(const std::vector<std::size_t>& sizes, std::size_t threads);

}  // namespace lockstep::mlp
