#include "lockstep/ode/detail/component_sink.h"

#include <utility>

namespace lockstep::ode {
namespace {

template <class T>
void gather_as(const void* from, void* to, std::size_t states, std::size_t components,
               const std::vector<std::size_t>& selection) {
  const T* in = static_cast<const T*>(from);
  T* out = static_cast<T*>(to);
  for (std::size_t i = 0; i < states; ++i, in += components) {
    for (const std::size_t component : selection) *out++ = in[component];
  }
}

}  // namespace

ComponentSink::ComponentSink(SolutionSink& inner, const Problem& problem, Precision precision,
                             std::vector<std::size_t> selection)
    : inner_(inner),
      save_points_(problem.save_points()),
      components_(problem.rhs->components()),
      element_bytes_(precision == Precision::f32 ? 4 : 8),
      selection_(std::move(selection)) {}

SolutionBlock ComponentSink::acquire(std::size_t first, std::size_t count) {
  Open open;
  open.inner = inner_.acquire(first, count);
  open.state.resize(count * save_points_ * components_ * element_bytes_);
  open.end_state.resize(count * components_ * element_bytes_);
  SolutionBlock block{first, count, open.state.data(), open.end_state.data(), open.inner.records};
  const std::lock_guard lock(mutex_);
  block.token = ++last_token_;
  open_.emplace(block.token, std::move(open));  // moving a vector leaves its memory where it is
  return block;
}

void ComponentSink::commit(const SolutionBlock& block) {
  Open open;
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(block.token);
    open = std::move(found->second);
    open_.erase(found);
  }
  gather(block.state, open.inner.state, block.count * save_points_);
  gather(block.end_state, open.inner.end_state, block.count);
  inner_.commit(open.inner);
}

void ComponentSink::gather(const void* from, void* to, std::size_t states) const {
  if (element_bytes_ == 4) {
    gather_as<float>(from, to, states, components_, selection_);
  } else {
    gather_as<double>(from, to, states, components_, selection_);
  }
}

}  // namespace lockstep::ode
