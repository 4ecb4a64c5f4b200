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
  block.events = open.inner.events;
  block.token = open_.put(std::move(open));
  return block;
}

void ComponentSink::commit(const SolutionBlock& block) {
  const Open open = open_.take(block.token);
  for (std::size_t row = 0; row < block.count; ++row) {
    if (!block.was_handed_in(row)) gather(block, open.inner, row);
  }
  SolutionBlock inner = open.inner;
  inner.handed_in = block.handed_in;
  inner_.commit(inner);
}

void ComponentSink::hand_in(const SolutionBlock& block, std::span<const std::size_t> rows) {
  SolutionBlock inner = open_.at(block.token).inner;
  inner.handed_in = block.handed_in;
  for (const std::size_t row : rows) gather(block, inner, row);
  inner_.hand_in(inner, rows);
}

void ComponentSink::gather(const SolutionBlock& from, const SolutionBlock& to, std::size_t row) const {
  const auto move = [&](const void* source, void* target, std::size_t states) {
    const std::byte* in = static_cast<const std::byte*>(source) + row * states * components_ * element_bytes_;
    std::byte* out = static_cast<std::byte*>(target) + row * states * selection_.size() * element_bytes_;
    if (element_bytes_ == 4) {
      gather_as<float>(in, out, states, components_, selection_);
    } else {
      gather_as<double>(in, out, states, components_, selection_);
    }
  };
  move(from.state, to.state, save_points_);
  move(from.end_state, to.end_state, 1);
}

}  // namespace lockstep::ode
