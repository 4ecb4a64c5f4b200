#include "lockstep/ode/row_selection.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep::ode {

Problem select_rows(const Problem& problem, const std::vector<std::size_t>& rows) {
  const auto pick = [&](const std::vector<double>& from, std::size_t width) {
    std::vector<double> to;
    to.reserve(rows.size() * width);
    for (const std::size_t row : rows) {
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(row * width);
      to.insert(to.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
    }
    return to;
  };
  const std::size_t parameters = problem.rhs->parameters();
  Problem selected;
  selected.rhs = problem.rhs;
  selected.event = problem.event;
  selected.initial_states = pick(problem.initial_states, problem.rhs->components());
  const bool own_parameters = parameters > 0 && problem.parameters.size() != parameters;
  selected.parameters = own_parameters ? pick(problem.parameters, parameters) : problem.parameters;
  selected.start_times = problem.start_times.size() > 1 ? pick(problem.start_times, 1) : problem.start_times;
  selected.end_times = problem.end_times.size() > 1 ? pick(problem.end_times, 1) : problem.end_times;
  selected.save_times_per_trajectory = problem.save_times_per_trajectory;
  selected.save_times =
      problem.save_times_per_trajectory ? pick(problem.save_times, problem.save_points()) : problem.save_times;
  return selected;
}

RowSink::RowSink(SolutionSink& whole, const Problem& problem, Precision precision, std::vector<std::size_t> rows)
    : whole_(whole),
      rows_(std::move(rows)),
      row_bytes_(problem.save_points() * problem.rhs->components() * (precision == Precision::f32 ? 4 : 8)),
      end_bytes_(problem.rhs->components() * (precision == Precision::f32 ? 4 : 8)) {}

SolutionBlock RowSink::acquire(std::size_t first, std::size_t count) {
  Open open;
  SolutionBlock block;
  if (rows_[first + count - 1] - rows_[first] == count - 1) {
    block = open.inner = whole_.acquire(rows_[first], count);
  } else {
    open.state.resize(count * row_bytes_);
    open.end_state.resize(count * end_bytes_);
    open.records.resize(count);
    block = {first, count, open.state.data(), open.end_state.data(), open.records.data()};
  }
  const std::lock_guard lock(mutex_);
  block.first = first;
  block.token = ++last_token_;
  open_.emplace(block.token, std::move(open));  // moving a vector leaves its memory where it is
  return block;
}

void RowSink::commit(const SolutionBlock& block) {
  Open open;
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(block.token);
    open = std::move(found->second);
    open_.erase(found);
  }
  if (open.records.empty()) {
    whole_.commit(open.inner);
  } else {
    copy(block);
  }
}

void RowSink::copy(const SolutionBlock& from) {
  for (std::size_t i = 0; i < from.count;) {
    std::size_t end = i + 1;
    while (end < from.count && rows_[from.first + end] == rows_[from.first + end - 1] + 1) ++end;
    const SolutionBlock to = whole_.acquire(rows_[from.first + i], end - i);
    std::memcpy(to.state, static_cast<const std::byte*>(from.state) + i * row_bytes_, (end - i) * row_bytes_);
    std::memcpy(to.end_state, static_cast<const std::byte*>(from.end_state) + i * end_bytes_, (end - i) * end_bytes_);
    std::copy_n(from.records + i, end - i, to.records);
    whole_.commit(to);
    i = end;
  }
}

}  // namespace lockstep::ode
