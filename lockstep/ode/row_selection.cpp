#include "lockstep/ode/row_selection.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace lockstep::ode {

RowSink::RowSink(SolutionSink& whole, const Problem& problem, Precision precision, std::vector<std::size_t> rows)
    : whole_(whole),
      rows_(std::move(rows)),
      row_bytes_(problem.save_points() * problem.rhs->components() * (precision == Precision::f32 ? 4 : 8)),
      end_bytes_(problem.rhs->components() * (precision == Precision::f32 ? 4 : 8)),
      keeps_events_(problem.keep_events) {}

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
    if (keeps_events_) {
      open.events.resize(count);
      block.events = open.events.data();
    }
  }
  block.first = first;
  block.token = open_.put(std::move(open));
  return block;
}

void RowSink::commit(const SolutionBlock& block) {
  const Open open = open_.take(block.token);
  if (open.records.empty()) {
    SolutionBlock inner = open.inner;
    inner.handed_in = block.handed_in;
    return whole_.commit(inner);
  }
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < block.count; ++row) {
    if (!block.was_handed_in(row)) rows.push_back(row);
  }
  copy(block, rows);
}

void RowSink::hand_in(const SolutionBlock& block, std::span<const std::size_t> rows) {
  const Open& open = open_.at(block.token);
  if (!open.records.empty()) return copy(block, rows);
  SolutionBlock inner = open.inner;
  inner.handed_in = block.handed_in;
  whole_.hand_in(inner, rows);
}

void RowSink::copy(const SolutionBlock& from, std::span<const std::size_t> rows) {
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i + 1;  // rows[i, end) are neighbours here and there
    while (end < rows.size() && rows[end] == rows[end - 1] + 1 &&
           rows_[from.first + rows[end]] == rows_[from.first + rows[end - 1]] + 1) {
      ++end;
    }
    const std::size_t row = rows[i], count = end - i;
    const SolutionBlock to = whole_.acquire(rows_[from.first + row], count);
    std::memcpy(to.state, static_cast<const std::byte*>(from.state) + row * row_bytes_, count * row_bytes_);
    std::memcpy(to.end_state, static_cast<const std::byte*>(from.end_state) + row * end_bytes_, count * end_bytes_);
    std::copy_n(from.records + row, count, to.records);
    if (to.events != nullptr) std::copy_n(from.events + row, count, to.events);
    whole_.commit(to);
    i = end;
  }
}

}  // namespace lockstep::ode
