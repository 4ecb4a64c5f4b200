#include "lockstep/core/matrix_overlap.h"

#include <cstdlib>
#include <numeric>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 56;

// The numbers 0, stride, 2 stride, ..., `count` of them.
struct Axis {
  std::int64_t count, stride;
};

Axis axis_of(std::size_t count, std::ptrdiff_t stride) {
  if (count < 2 || stride == 0) return {1, 0};
  return {static_cast<std::int64_t>(count), stride};
}

bool within_memory(std::size_t count, std::ptrdiff_t stride) {
  if (count < 2 || stride == 0) return true;
  return stride > -kMost && stride < kMost && count <= static_cast<std::uint64_t>(kMost / std::abs(stride));
}

std::int64_t divide_down(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }
std::int64_t divide_up(std::int64_t a, std::int64_t b) { return -divide_down(-a, b); }
std::int64_t modulo(std::int64_t a, std::int64_t b) { return a - divide_down(a, b) * b; }

// Whether x a.stride - y b.stride = n for any x and y within the axes.
class Difference {
 public:
  Difference(Axis a, Axis b) : a_(a), b_(b) {
    // Counted from the other end where a stride is negative.
    if (a_.stride < 0) shift_ -= (a_.count - 1) * std::exchange(a_.stride, -a_.stride);
    if (b_.stride < 0) shift_ += (b_.count - 1) * std::exchange(b_.stride, -b_.stride);
    if (a_.stride == 0 || b_.stride == 0) return;
    divisor_ = std::gcd(a_.stride, b_.stride);
    // Euclid: the inverse of a / divisor modulo b / divisor.
    std::int64_t old = a_.stride / divisor_, now = b_.stride / divisor_, old_factor = 1, factor = 0;
    while (now != 0) {
      const std::int64_t times = old / now;
      old = std::exchange(now, old - times * now);
      old_factor = std::exchange(factor, old_factor - times * factor);
    }
    inverse_ = old_factor;
  }

  bool can_be(std::int64_t n) const {
    n += shift_;
    if (b_.stride == 0) return a_.stride == 0 ? n == 0 : is_on(a_, n);
    if (a_.stride == 0) return is_on(b_, -n);
    if (n % divisor_ != 0) return false;
    const std::int64_t least = std::max<std::int64_t>(0, divide_up(n, a_.stride));
    const std::int64_t most = std::min(a_.count - 1, divide_down(n + (b_.count - 1) * b_.stride, a_.stride));
    __extension__ using Wide = __int128;
    const std::int64_t period = b_.stride / divisor_;
    const auto x =
        static_cast<std::int64_t>(static_cast<Wide>(modulo(n / divisor_, period)) * modulo(inverse_, period) % period);
    return least <= most && least + modulo(x - least, period) <= most;
  }

 private:
  static bool is_on(const Axis& axis, std::int64_t n) {
    return n % axis.stride == 0 && n / axis.stride >= 0 && n / axis.stride < axis.count;
  }

  Axis a_, b_;
  std::int64_t shift_ = 0, divisor_ = 1, inverse_ = 0;
};

// Both repeat after `period`, in which they take `a` and `b` neighbouring numbers: do these keep apart, b's beginning
// `offset` after a's? Most arrays that interleave are told apart so, by one division.
bool interleave(const Axis& period, const Axis& a, const Axis& b, std::int64_t offset) {
  const std::int64_t length = std::abs(period.stride);
  const auto width = [](const Axis& axis) { return (axis.count - 1) * std::abs(axis.stride) + 1; };
  if (length == 0 || width(a) > length || width(b) > length) return false;
  if (a.stride < 0) offset += (a.count - 1) * -a.stride;
  if (b.stride < 0) offset -= (b.count - 1) * -b.stride;
  const std::int64_t begin = modulo(offset, length);
  return begin >= width(a) && begin + width(b) <= length;
}

Places moved(const Slices& slices, std::size_t number) {
  Places places = slices.first;
  places.address += number * static_cast<std::size_t>(slices.stride) * places.bytes;
  return places;
}

// Around all slices: most arrays lie one after the other.
Extent around(const Slices& slices) {
  const Extent begin = extent_of(slices.first), end = extent_of(moved(slices, slices.count - 1));
  return {std::min(begin.begin, end.begin), std::max(begin.end, end.end)};
}

}  // namespace

bool fits_memory(const Places& view) {
  return within_memory(view.rows, view.row_stride) && within_memory(view.columns, view.column_stride);
}

bool share_memory(const Places& a, const Places& b) {
  if (a.rows == 0 || a.columns == 0 || b.rows == 0 || b.columns == 0) return false;
  if (!fits_memory(a) || !fits_memory(b)) return true;
  if (are_apart(extent_of(a), extent_of(b))) return false;
  const auto size = static_cast<std::int64_t>(a.bytes), apart = static_cast<std::int64_t>(b.address - a.address);
  const std::int64_t offset = divide_down(apart, size), rest = apart - offset * size;
  Axis a_inner = axis_of(a.rows, a.row_stride), a_outer = axis_of(a.columns, a.column_stride);
  Axis b_inner = axis_of(b.rows, b.row_stride), b_outer = axis_of(b.columns, b.column_stride);
  if (rest == 0) {
    if (a_inner.stride == b_inner.stride && interleave(a_inner, a_outer, b_outer, offset)) return false;
    if (a_outer.stride == b_outer.stride && interleave(a_outer, a_inner, b_inner, offset)) return false;
  }
  // Every pair along the shorter axes, with any along the longer ones.
  if (std::max(a_outer.count, b_outer.count) > std::max(a_inner.count, b_inner.count)) {
    std::swap(a_inner, a_outer);
    std::swap(b_inner, b_outer);
  }
  const Difference inner(a_inner, b_inner);
  const auto meet = [&](std::int64_t n) { return inner.can_be(n) || (rest != 0 && inner.can_be(n + 1)); };
  if (a_outer.stride == b_outer.stride) {
    for (std::int64_t steps = 1 - b_outer.count; steps < a_outer.count; ++steps) {
      if (meet(offset - steps * a_outer.stride)) return true;
    }
    return false;
  }
  for (std::int64_t i = 0; i < a_outer.count; ++i) {
    for (std::int64_t j = 0; j < b_outer.count; ++j) {
      if (meet(offset - i * a_outer.stride + j * b_outer.stride)) return true;
    }
  }
  return false;
}

bool shares_memory(const Slices& slices, const Places& other) {
  if (slices.count == 0 || slices.first.rows == 0 || slices.first.columns == 0) return false;
  if (!fits_memory(slices.first) || !within_memory(slices.count, slices.stride)) return true;
  if (are_apart(around(slices), extent_of(other))) return false;
  for (std::size_t i = 0; i < slices.count; ++i) {
    if (share_memory(moved(slices, i), other)) return true;
  }
  return false;
}

bool slices_share_memory(const Slices& a, const Slices& b) {
  const bool empty = a.first.rows == 0 || a.first.columns == 0 || b.first.rows == 0 || b.first.columns == 0;
  if (a.count < 2 || empty) return false;
  for (const Slices* one : {&a, &b}) {
    if (!fits_memory(one->first) || !within_memory(one->count, one->stride)) return true;
  }
  const auto meet = [](const Places& one, const Places& other) {
    return !are_apart(extent_of(one), extent_of(other)) && share_memory(one, other);
  };
  if (are_apart(around(a), around(b))) return false;
  if (a.stride == b.stride) {  // how far apart two slices are depends on the difference of their numbers alone
    for (std::size_t steps = 1; steps < a.count; ++steps) {
      if (meet(moved(a, steps), b.first) || meet(a.first, moved(b, steps))) return true;
    }
    return false;
  }
  for (std::size_t i = 0; i < a.count; ++i) {
    const Places slice = moved(a, i);
    for (std::size_t j = 0; j < b.count; ++j) {
      if (j != i && meet(slice, moved(b, j))) return true;
    }
  }
  return false;
}

bool shares_places(const Places& view) {
  if (view.rows == 0 || view.columns == 0) return false;
  if ((view.rows > 1 && view.row_stride == 0) || (view.columns > 1 && view.column_stride == 0)) return true;
  if (view.rows < 2 || view.columns < 2) return false;
  if (!fits_memory(view)) return true;
  // The least steps that lead back to the same place are column / divisor rows and row / divisor columns.
  const auto row = static_cast<std::uint64_t>(std::abs(view.row_stride));
  const auto column = static_cast<std::uint64_t>(std::abs(view.column_stride));
  const std::uint64_t divisor = std::gcd(row, column);
  return column / divisor < view.rows && row / divisor < view.columns;
}

bool same_view(const Places& a, const Places& b) {
  // Of one column the stride between columns says nothing.
  if (a.address != b.address || a.bytes != b.bytes || a.rows != b.rows ||
      (a.rows > 1 && a.row_stride != b.row_stride) ||
      (std::min(a.columns, b.columns) > 1 && a.column_stride != b.column_stride)) {
    return false;
  }
  if (a.columns == b.columns || a.rows < 2) return true;
  const Places& wider = a.columns < b.columns ? b : a;
  if (!within_memory(wider.rows, wider.row_stride) || !within_memory(wider.columns, wider.column_stride)) return false;
  const auto row = static_cast<std::size_t>(std::abs(wider.row_stride));
  const auto column = static_cast<std::size_t>(std::abs(wider.column_stride));
  if ((wider.columns - 1) * column < row || (wider.rows - 1) * row < column) return true;
  // Rows that interleave: of the view with more columns no two elements may lie at one place.
  return !shares_places(wider);
}

void refuse_size(std::string name, const Places& view) {
  const auto text = [](auto number) { return std::to_string(number); };
  throw Error(ErrorKind::invalid_argument,
              {std::move(name),
               text(view.rows) + " x " + text(view.columns) + " elements with strides " + text(view.row_stride) +
                   " (row) and " + text(view.column_stride) + " (column)",
               "an array that fits into memory", "give the number of samples, and strides in elements"});
}

void refuse_null(const std::string& name) {
  throw Error(ErrorKind::invalid_argument, {name + ".data", "a null pointer", "an address", {}});
}

void refuse_overlap(std::string written, const Places& to, const std::string& read, const Places& from) {
  if (!fits_memory(to)) refuse_size(std::move(written), to);
  if (!fits_memory(from)) refuse_size(read, from);
  throw Error(ErrorKind::invalid_argument,
              {std::move(written), "memory that overlaps " + read,
               "memory apart from it, or the same view: its address and its strides", "give it an array of its own"});
}

void refuse_two_results(std::string written, const Places& to, const std::string& other, const Places& beside) {
  if (!fits_memory(to)) refuse_size(std::move(written), to);
  if (!fits_memory(beside)) refuse_size(other, beside);
  throw Error(ErrorKind::invalid_argument,
              {std::move(written), "memory that overlaps " + other, "memory of its own", "give each result an array"});
}

void refuse_workspace(const std::string& name, const Places& view) {
  if (!fits_memory(view)) refuse_size(name, view);
  throw Error(ErrorKind::invalid_argument, {"workspace", "memory that overlaps " + name, "memory of its own",
                                            "give scratch apart from all arrays that the call reads or writes"});
}

void refuse_shared_places(std::string written, const Places& view) {
  if (!fits_memory(view)) refuse_size(std::move(written), view);
  const auto text = [](auto number) { return std::to_string(number); };
  throw Error(ErrorKind::invalid_argument,
              {std::move(written),
               "strides " + text(view.row_stride) + " (row) and " + text(view.column_stride) + " (column) for " +
                   text(view.rows) + " x " + text(view.columns) + " results, some of which share a place",
               "a place for each result",
               "let rows begin " + text(view.columns) + " or more elements apart with columns at 1, or columns " +
                   text(view.rows) + " or more with rows at 1"});
}

}  // namespace lockstep
