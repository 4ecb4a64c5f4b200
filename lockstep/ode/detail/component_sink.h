// Some components of the state go on to another sink, the rest is dropped.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/core/precision.h"
#include "lockstep/ode/detail/open_blocks.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode {

class ComponentSink : public SolutionSink {
 public:
  // Takes the problem's whole states and hands on state[trajectory][time][i] = component selection[i].
  ComponentSink(SolutionSink& inner, const Problem& problem, Precision precision, std::vector<std::size_t> selection);

  SolutionBlock acquire(std::size_t first, std::size_t count) override;
  void commit(const SolutionBlock& block) override;
  const std::atomic<std::uint32_t>* wishes() const override { return inner_.wishes(); }
  void hand_in(const SolutionBlock& block, std::span<const std::size_t> rows) override;

 private:
  struct Open {
    SolutionBlock inner;
    std::vector<std::byte> state, end_state;
  };
  void gather(const SolutionBlock& from, const SolutionBlock& to, std::size_t row) const;

  SolutionSink& inner_;
  std::size_t save_points_;
  std::size_t components_;
  std::size_t element_bytes_;
  std::vector<std::size_t> selection_;
  detail::OpenBlocks<Open> open_;
};

}  // namespace lockstep::ode
