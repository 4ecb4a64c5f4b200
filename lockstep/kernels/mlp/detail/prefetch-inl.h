// Bringing the next strip's samples closer while the arithmetic goes on. No include guard: part of kernels-inl.h.

// Whether samples lie one after another, each with its components side by side.
template <class T>
bool is_gapless(const MatrixView<T>& view) {
  return view.column_stride == 1 && view.row_stride == static_cast<ptrdiff_t>(view.columns);
}

// The cache lines of some samples of a view: runs of adjacent bytes.
class CacheLines {
 public:
  template <class T>
  CacheLines(const MatrixView<T>& view, size_t first, size_t count) {
    const bool by_row = view.column_stride == 1;
    const bool gapless = is_gapless(view);
    run_ = reinterpret_cast<const char*>(view.data + static_cast<ptrdiff_t>(first) * view.row_stride);
    runs_ = count == 0 ? 0 : gapless ? 1 : by_row ? count : view.columns;
    stride_ = (by_row ? view.row_stride : view.column_stride) * static_cast<ptrdiff_t>(sizeof(T));
    bytes_ = (gapless ? count * view.columns : by_row ? view.columns : count) * sizeof(T);
  }

  // The next line, null at the end.
  const char* next() {
    if (runs_ == 0) return nullptr;
    const char* line = run_ + offset_;
    offset_ += kAlignment;
    if (offset_ >= bytes_) {
      offset_ = 0;
      run_ += stride_;
      --runs_;
    }
    return line;
  }

 private:
  const char* run_;
  size_t runs_;
  ptrdiff_t stride_;
  size_t bytes_;
  size_t offset_ = 0;
};

// Rows of a strip's lanes on their way between a buffer and a view whose columns are adjacent samples, both
// [component]. Columns that lie a power of two apart share a set of each cache, which holds 8 of their lines or some
// more: lines fetched a whole strip before they are used would be gone by then. So rows are copied one after another
// among the blocks of another strip, each fetched kLead rows before. As bytes: the type of the numbers does not matter.
class Rows {
 public:
  Rows() = default;
  // From the view, or to it where `to_view`; `per_step` rows a step.
  template <class T>
  Rows(const T* from, ptrdiff_t from_stride, T* to, ptrdiff_t to_stride, size_t rows, size_t per_step, bool to_view)
      : from_(reinterpret_cast<const uint8_t*>(from)),
        to_(reinterpret_cast<uint8_t*>(to)),
        from_stride_(from_stride * static_cast<ptrdiff_t>(sizeof(T))),
        to_stride_(to_stride * static_cast<ptrdiff_t>(sizeof(T))),
        left_(rows),
        per_step_(per_step),
        to_view_(to_view) {
    for (size_t row = 0; row < std::min(left_, kLead); ++row) fetch(row);
  }

  void step() { copy(std::min(left_, per_step_)); }
  void finish() { copy(left_); }

 private:
  static constexpr size_t kLead = 5;
  static constexpr size_t kBytes = 2 * hn::MaxLanes(hn::ScalableTag<uint8_t>());

  // The lines of a row, one more than its size where it begins within one. Inlined: GCC takes calls of what only
  // prefetches for calls without effect.
  HWY_INLINE void fetch(size_t rows_on) const {
    const auto on = static_cast<ptrdiff_t>(rows_on);
    for (size_t at = 0; at < kBytes + kAlignment; at += kAlignment) {
      const size_t byte = std::min(at, kBytes - 1);
      if (to_view_) {
        __builtin_prefetch(to_ + on * to_stride_ + byte, 1, 3);
      } else {
        __builtin_prefetch(from_ + on * from_stride_ + byte, 0, 3);
      }
    }
  }
  void copy(size_t rows) {
    const hn::ScalableTag<uint8_t> d;
    for (; rows > 0; --rows, --left_) {
      if (left_ > kLead) fetch(kLead);
      for (size_t at = 0; at < kBytes; at += hn::Lanes(d)) hn::StoreU(hn::LoadU(d, from_ + at), d, to_ + at);
      from_ += from_stride_;
      to_ += to_stride_;
    }
  }

  const uint8_t* from_ = nullptr;
  uint8_t* to_ = nullptr;
  ptrdiff_t from_stride_ = 0, to_stride_ = 0;
  size_t left_ = 0, per_step_ = 0;
  bool to_view_ = false;
};

// What a layer does between its blocks. A few lines a block: fetched all at once they would wait for one another, and the
// arithmetic for them.
struct Ahead {
  CacheLines in;
  CacheLines out;

  void fetch() {
    for (int i = 0; i < 2; ++i) {
      if (const char* line = in.next()) __builtin_prefetch(line, 0, 3);
      if (const char* line = out.next()) __builtin_prefetch(line, 1, 3);
    }
  }
};
// The same beside rows that are copied. A type of its own: asking for rows in the smallest nets' few blocks costs them
// 3 % of their time.
struct AheadByColumns {
  Ahead lines;
  Rows in = {};
  Rows out = {};

  void fetch() {
    lines.fetch();
    in.step();
    out.step();
  }
};

// Where nothing need be asked for.
struct NothingAhead {
  void fetch() {}
};
