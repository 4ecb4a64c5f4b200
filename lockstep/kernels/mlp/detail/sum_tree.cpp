#include "lockstep/kernels/mlp/detail/sum_tree.h"

#include <cstddef>
#include <numeric>

namespace lockstep::mlp {

SumTree make_sum_tree(const std::vector<std::size_t>& sizes, std::size_t threads) {
  const std::size_t groups = sizes.size();
  // In the order of its leaves, each branch of the tree is one stretch.
  std::vector<std::vector<std::uint32_t>> leaves(groups);
  for (std::size_t row = 0; row < groups; ++row) leaves[row] = {static_cast<std::uint32_t>(row)};
  for (std::size_t height = groups; height > 1;) {
    const std::size_t half = (height + 1) / 2;
    for (std::size_t row = 0; row + half < height; ++row) {
      leaves[row].insert(leaves[row].end(), leaves[row + half].begin(), leaves[row + half].end());
    }
    height = half;
  }
  SumTree tree;
  tree.shares.resize(threads);
  const std::size_t whole = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
  std::vector<std::size_t> owner(groups);    // of each row, while additions go on; `threads`: common
  std::vector<std::uint32_t> place(groups);  // among its owner's rows
  std::size_t before = 0;
  for (std::size_t i = 0; i < groups; ++i) {
    const std::uint32_t group = leaves[0][i];
    // The thread on whose part of the whole the group's middle falls.
    owner[group] = (2 * before + sizes[group]) * threads / (2 * whole);
    before += sizes[group];
    std::vector<std::uint32_t>& own = tree.shares[owner[group]].groups;
    place[group] = static_cast<std::uint32_t>(own.size());
    own.push_back(group);
  }
  const auto publish = [&](std::size_t row) {
    if (owner[row] < threads) tree.shares[owner[row]].published.push_back(place[row]);
  };
  for (std::size_t height = groups; height > 1;) {
    const std::size_t half = (height + 1) / 2;
    for (std::size_t row = 0; row + half < height; ++row) {
      if (owner[row] == owner[row + half] && owner[row] < threads) {
        tree.shares[owner[row]].additions.push_back({place[row], place[row + half]});
        continue;
      }
      publish(row);
      publish(row + half);
      owner[row] = threads;
      tree.common.push_back({static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(row + half)});
    }
    height = half;
  }
  if (groups > 0) publish(0);  // where one thread has all
  return tree;
}

}  // namespace lockstep::mlp
