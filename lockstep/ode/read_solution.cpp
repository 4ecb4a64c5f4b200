#include "lockstep/ode/read_solution.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "lockstep/core/error.h"
#include "lockstep/core/names.h"
#include "lockstep/core/standard_arithmetic.h"

namespace lockstep::ode {
namespace {

constexpr std::size_t kReadBytes = std::size_t{8} << 20;

// How many indices of [0, size) a range has. Beginning at the end is an empty range, beginning beyond it a mistake.
std::size_t length(const IndexRange& range, std::size_t size, const char* field) {
  if (range.stride == 0) throw Error(ErrorKind::invalid_argument, {field, "a stride of 0", "1 or more", {}});
  if (range.first > size) {
    throw Error(ErrorKind::invalid_argument, {field,
                                              "a first of " + std::to_string(range.first),
                                              "at most " + std::to_string(size) + ", as many as the file has",
                                              {}});
  }
  const std::size_t span = std::min(range.count, size - range.first);
  return span / range.stride + (span % range.stride != 0 ? 1 : 0);
}

std::vector<std::size_t> columns_of(const ResultFile& file, const std::vector<std::string>& wanted) {
  std::vector<std::size_t> columns(file.components());
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  if (wanted.empty()) return columns;
  const std::vector<std::string_view> known(file.component_names().begin(), file.component_names().end());
  columns.clear();
  for (const std::string& name : wanted) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end()) throw unknown_name("part.components", name, known);
    columns.push_back(static_cast<std::size_t>(found - known.begin()));
  }
  return columns;
}

class Reader {
 public:
  Reader(const ResultFile& file, const Part& part)
      : file_(file),
        part_(part),
        columns_(columns_of(file, part.components)),
        rows_(length(part.trajectories, file.trajectories(), "part.trajectories")),
        points_(length(part.times, file.save_points(), "part.times")) {}

  Solution read() const {
    Solution solution(file_.precision(), rows_, columns_.size(), times(), file_.times_per_trajectory());
    if (file_.keeps_events()) solution.keep_events();
    if (file_.precision() == Precision::f32) {
      read_numbers<float>(solution);
    } else {
      read_numbers<double>(solution);
    }
    return solution;
  }

 private:
  std::size_t row(std::size_t i) const { return part_.trajectories.first + i * part_.trajectories.stride; }

  std::vector<double> times() const {
    const hdf5::Dataset time = file_.hdf5().dataset(result_names::kTime);
    if (!file_.times_per_trajectory()) {
      std::vector<double> times(points_);
      time.read_into<double>(times, {part_.times.first}, {points_}, {part_.times.stride});
      return times;
    }
    std::vector<double> times(rows_ * points_);
    time.read_into<double>(times, {row(0), part_.times.first}, {rows_, points_},
                           {part_.trajectories.stride, part_.times.stride});
    return times;
  }

  // HDF5 takes single components out of rows slowly: whole rows come in pieces, and the columns are chosen here.
  template <class T>
  void read_numbers(Solution& solution) const {
    const hdf5::Dataset state = file_.hdf5().dataset(result_names::kState);
    const hdf5::Dataset end_state = file_.hdf5().dataset(result_names::kEndState);
    const std::size_t all = file_.components();
    const std::size_t row_bytes = std::max<std::size_t>((points_ + 1) * all * sizeof(T), 1);
    const std::size_t piece_rows = std::max<std::size_t>(kReadBytes / row_bytes, 1);
    std::vector<T> states, ends;
    for (std::size_t first = 0; first < rows_; first += piece_rows) {
      const std::size_t count = std::min(piece_rows, rows_ - first);
      const SolutionBlock block = solution.block(first, count);
      read_records(block, first);
      if (block.events != nullptr) read_events(block, first);
      states.resize(count * points_ * all);
      ends.resize(count * all);
      state.read_into<T>(states, {row(first), part_.times.first, 0}, {count, points_, all},
                         {part_.trajectories.stride, part_.times.stride, 1});
      end_state.read_into<T>(ends, {row(first), 0}, {count, all}, {part_.trajectories.stride, 1});
      choose_columns(states.data(), count * points_, static_cast<T*>(block.state));
      choose_columns(ends.data(), count, static_cast<T*>(block.end_state));
    }
  }

  template <class T>
  void choose_columns(const T* from, std::size_t rows, T* to) const {
    for (std::size_t i = 0; i < rows; ++i, from += file_.components()) {
      for (const std::size_t column : columns_) *to++ = from[column];
    }
  }

  void read_records(const SolutionBlock& block, std::size_t first) const {
    const std::size_t stride = part_.trajectories.stride;
    if (block.count == 0) return;
    if (stride == 1) {
      std::ranges::copy(file_.records(row(first), block.count), block.records);
      return;
    }
    for (std::size_t i = 0; i < block.count; ++i) block.records[i] = file_.records(row(first + i), 1).front();
  }

  void read_events(const SolutionBlock& block, std::size_t first) const {
    const std::size_t stride = part_.trajectories.stride;
    for (std::size_t i = 0; i < block.count;) {
      const std::size_t count = stride == 1 ? block.count : 1;  // neighbours are read together
      const EventLog log = file_.events(row(first + i), count);
      for (std::size_t k = 0; k < count; ++k, ++i) {
        for (std::size_t at = log.first[k]; at < log.first[k + 1]; ++at)
          block.events[i].push_back({log.times[at], log.resets[at]});
      }
    }
  }

  const ResultFile& file_;
  const Part& part_;
  std::vector<std::size_t> columns_;
  std::size_t rows_;
  std::size_t points_;
};

}  // namespace

Solution read_solution(const ResultFile& file, const Part& part) { return Reader(file, part).read(); }

Solution read_solution(const std::filesystem::path& path, const Part& part) {
  const StandardReading arithmetic;
  return read_solution(ResultFile(path), part);
}

}  // namespace lockstep::ode
