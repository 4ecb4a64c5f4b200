// Bringing the next strip's samples closer while the arithmetic goes on. No include guard: part of kernels-inl.h.

// The cache lines of some samples of a view: runs of adjacent bytes.
class CacheLines {
 public:
  template <class T>
  CacheLines(const MatrixView<T>& view, size_t first, size_t count) {
    const bool by_row = view.column_stride == 1;
    const bool gapless = by_row && view.row_stride == static_cast<ptrdiff_t>(view.columns);
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

// A few lines a block: fetched all at once they would wait for one another, and the arithmetic for them.
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
