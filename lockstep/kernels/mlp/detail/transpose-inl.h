// Samples into lanes and back. No include guard: part of kernels-inl.h.
// A register is taken as 128-bit blocks of Q numbers (4 float, 2 double): block b of register r holds Q components of
// sample Q b + r, so transposing Q x Q inside the blocks leaves one component of consecutive samples in a register.

template <class T>
inline constexpr size_t kQuad = 16 / sizeof(T);

#if HWY_TARGET != HWY_SCALAR
template <class D>
inline constexpr size_t kBytes = hn::MaxLanes(D()) * sizeof(hn::TFromD<D>);

// Blocks of 128 bits from p, p + stride, p + 2 stride...
template <class D>
HWY_INLINE hn::Vec<D> gather_blocks(D d, const hn::TFromD<D>* p, ptrdiff_t stride) {
  if constexpr (kBytes<D> <= 16) {
    return hn::LoadU(d, p);
  } else {
    const hn::Half<D> half;
    constexpr ptrdiff_t blocks = kBytes<D> / 32;
    return hn::Combine(d, gather_blocks(half, p + blocks * stride, stride), gather_blocks(half, p, stride));
  }
}

template <class D>
HWY_INLINE void scatter_blocks(D d, hn::Vec<D> v, hn::TFromD<D>* p, ptrdiff_t stride) {
  if constexpr (kBytes<D> <= 16) {
    hn::StoreU(v, d, p);
  } else {
    const hn::Half<D> half;
    constexpr ptrdiff_t blocks = kBytes<D> / 32;
    scatter_blocks(half, hn::LowerHalf(half, v), p, stride);
    scatter_blocks(half, hn::UpperHalf(half, v), p + blocks * stride, stride);
  }
}

template <class D, class V>
HWY_INLINE void transpose_in_blocks(D d, V* v) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const V a = hn::InterleaveLower(d, v[0], v[2]), b = hn::InterleaveLower(d, v[1], v[3]);
    const V c = hn::InterleaveUpper(d, v[0], v[2]), e = hn::InterleaveUpper(d, v[1], v[3]);
    v[0] = hn::InterleaveLower(d, a, b);
    v[1] = hn::InterleaveUpper(d, a, b);
    v[2] = hn::InterleaveLower(d, c, e);
    v[3] = hn::InterleaveUpper(d, c, e);
  } else {
    const V a = v[0];
    v[0] = hn::InterleaveLower(d, a, v[1]);
    v[1] = hn::InterleaveUpper(d, a, v[1]);
  }
}

#endif  // HWY_SCALAR

// Samples of a register taken from rows whose components are adjacent; at least kQuad components.
template <class T>
void rows_to_lanes(const T* rows, ptrdiff_t row_stride, size_t components, T* to, size_t to_stride) {
#if HWY_TARGET != HWY_SCALAR
  const Register<T> d;
  constexpr size_t quad = kQuad<T>;
  for (size_t c = 0; c < components; c += quad) {
    const size_t first = std::min(c, components - quad);  // the last step may repeat components of the one before
    hn::Vec<Register<T>> v[quad];
    for (size_t r = 0; r < quad; ++r) {
      v[r] = gather_blocks(d, rows + static_cast<ptrdiff_t>(r) * row_stride + first,
                           static_cast<ptrdiff_t>(quad) * row_stride);
    }
    transpose_in_blocks(d, v);
    for (size_t r = 0; r < quad; ++r) hn::StoreU(v[r], d, to + (first + r) * to_stride);
  }
#else
  (void)row_stride;
  for (size_t c = 0; c < components; ++c) to[c * to_stride] = rows[c];
#endif
}

template <class T>
void lanes_to_rows(const T* from, size_t from_stride, size_t components, T* rows, ptrdiff_t row_stride) {
#if HWY_TARGET != HWY_SCALAR
  const Register<T> d;
  constexpr size_t quad = kQuad<T>;
  for (size_t c = 0; c < components; c += quad) {
    const size_t first = std::min(c, components - quad);
    hn::Vec<Register<T>> v[quad];
    for (size_t r = 0; r < quad; ++r) v[r] = hn::LoadU(d, from + (first + r) * from_stride);
    transpose_in_blocks(d, v);
    for (size_t r = 0; r < quad; ++r) {
      scatter_blocks(d, v[r], rows + static_cast<ptrdiff_t>(r) * row_stride + first,
                     static_cast<ptrdiff_t>(quad) * row_stride);
    }
  }
#else
  (void)row_stride;
  for (size_t c = 0; c < components; ++c) rows[c] = from[c * from_stride];
#endif
}

#if HWY_TARGET != HWY_SCALAR
// Rows of two or three adjacent numbers, one after another: too narrow for the blocks above.
template <class T>
void narrow_rows_to_lanes(const T* rows, size_t components, T* to, size_t to_stride) {
  const Register<T> d;
  hn::Vec<Register<T>> a, b, c;
  if (components == 2) {
    hn::LoadInterleaved2(d, rows, a, b);
  } else {
    hn::LoadInterleaved3(d, rows, a, b, c);
    hn::StoreU(c, d, to + 2 * to_stride);
  }
  hn::StoreU(a, d, to);
  hn::StoreU(b, d, to + to_stride);
}

template <class T>
void lanes_to_narrow_rows(const T* from, size_t from_stride, size_t components, T* rows) {
  const Register<T> d;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
  if (components == 2) {
    hn::StoreInterleaved2(a, b, d, rows);
  } else {
    hn::StoreInterleaved3(a, b, hn::LoadU(d, from + 2 * from_stride), d, rows);
  }
}
#endif  // HWY_SCALAR

#if HWY_TARGET == HWY_AVX3
// Rows of four adjacent numbers, one after another, by whole registers: r holds samples 4r to 4r + 3. Of the blocks
// above each would be brought by itself: 4-32-16-4 tanh takes 0.96 of the time (Zen 5).
struct QuadRows {
  alignas(64) int32_t pair[16];    // of two registers of rows: component 0 of eight samples, then component 1
  alignas(64) int32_t sample[16];  // back, of two such pairs: four samples
};
constexpr QuadRows quad_rows() {
  QuadRows rows{};
  for (int i = 0; i < 16; ++i) {
    rows.pair[i] = i % 8 * 4 + i / 8;
    rows.sample[i] = i / 4 + 8 * (i % 2) + 16 * (i % 4 / 2);
  }
  return rows;
}
inline constexpr QuadRows kQuadRows = quad_rows();

// hn::TwoTablesLookupLanes, which Highway has since 1.0.4.
HWY_INLINE hn::Vec512<float> lookup_in_two(hn::Vec512<float> a, hn::Vec512<float> b, hn::Vec512<int32_t> indices) {
  return hn::Vec512<float>{_mm512_permutex2var_ps(a.raw, indices.raw, b.raw)};
}

inline void quad_rows_to_lanes(const float* rows, float* to, size_t to_stride) {
  const hn::FixedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto low = hn::Load(di, kQuadRows.pair), high = hn::Add(low, hn::Set(di, 2));
  hn::Vec<decltype(d)> v[4], halves[2][2];  // [components 0 and 1, or 2 and 3][eight samples]
  for (size_t r = 0; r < 4; ++r) v[r] = hn::LoadU(d, rows + 16 * r);
  for (size_t r = 0; r < 2; ++r) {
    halves[0][r] = lookup_in_two(v[2 * r], v[2 * r + 1], low);
    halves[1][r] = lookup_in_two(v[2 * r], v[2 * r + 1], high);
  }
  for (size_t i = 0; i < 2; ++i) {
    hn::StoreU(hn::ConcatLowerLower(d, halves[i][1], halves[i][0]), d, to + 2 * i * to_stride);
    hn::StoreU(hn::ConcatUpperUpper(d, halves[i][1], halves[i][0]), d, to + (2 * i + 1) * to_stride);
  }
}

inline void lanes_to_quad_rows(const float* from, size_t from_stride, float* rows) {
  const hn::FixedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto first = hn::Load(di, kQuadRows.sample), second = hn::Add(first, hn::Set(di, 4));
  hn::Vec<decltype(d)> halves[2][2];
  for (size_t i = 0; i < 2; ++i) {
    const auto a = hn::LoadU(d, from + 2 * i * from_stride), b = hn::LoadU(d, from + (2 * i + 1) * from_stride);
    halves[i][0] = hn::ConcatLowerLower(d, b, a);
    halves[i][1] = hn::ConcatUpperUpper(d, b, a);
  }
  for (size_t r = 0; r < 2; ++r) {
    float* const to = rows + 32 * r;
    hn::StoreU(lookup_in_two(halves[0][r], halves[1][r], first), d, to);
    hn::StoreU(lookup_in_two(halves[0][r], halves[1][r], second), d, to + 16);
  }
}
#endif  // HWY_AVX3

template <class T>
bool has_quad_rows(const MatrixView<T>& view) {
  return HWY_TARGET == HWY_AVX3 && sizeof(T) == 4 && view.columns == 4 && is_gapless(view);
}

template <class T>
bool has_narrow_rows(const MatrixView<T>& view) {
  return HWY_TARGET != HWY_SCALAR && (view.columns == 2 || view.columns == 3) && is_gapless(view);
}

// Copies samples first .. first + count of a view into lanes [component][lane] of `registers` registers; lanes past
// count become zero.
template <class T>
void load_lanes(const MatrixView<const T>& view, size_t first, size_t count, int registers, T* to, size_t to_stride) {
  const Register<T> d;
  const size_t lanes = hn::Lanes(d);
  const size_t wanted = static_cast<size_t>(registers) * lanes;
  const T* from = view.data + static_cast<ptrdiff_t>(first) * view.row_stride;
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(T) == 4) {
    if (count == wanted && has_quad_rows(view)) {
      for (size_t lane = 0; lane < wanted; lane += lanes) quad_rows_to_lanes(from + 4 * lane, to + lane, to_stride);
      return;
    }
  }
#endif
  if (count == wanted && view.column_stride == 1 && (lanes == 1 || view.columns >= kQuad<T>)) {
    for (size_t lane = 0; lane < wanted; lane += lanes) {
      rows_to_lanes(from + static_cast<ptrdiff_t>(lane) * view.row_stride, view.row_stride, view.columns, to + lane,
                    to_stride);
    }
#if HWY_TARGET != HWY_SCALAR
  } else if (count == wanted && has_narrow_rows(view)) {
    for (size_t lane = 0; lane < wanted; lane += lanes) {
      narrow_rows_to_lanes(from + lane * view.columns, view.columns, to + lane, to_stride);
    }
#endif
  } else if (count == wanted && view.row_stride == 1) {
    for (size_t c = 0; c < view.columns; ++c, from += view.column_stride, to += to_stride) {
      for (size_t lane = 0; lane < wanted; lane += lanes) hn::StoreU(hn::LoadU(d, from + lane), d, to + lane);
    }
  } else {
    for (size_t c = 0; c < view.columns; ++c, from += view.column_stride, to += to_stride) {
      const T* sample = from;
      for (size_t lane = 0; lane < count; ++lane, sample += view.row_stride) to[lane] = *sample;
      for (size_t lane = count; lane < wanted; ++lane) to[lane] = T(0);
    }
  }
}

template <class T>
void store_lanes(const T* from, size_t from_stride, int registers, const MatrixView<T>& view, size_t first,
                 size_t count) {
  const Register<T> d;
  const size_t lanes = hn::Lanes(d);
  const size_t held = static_cast<size_t>(registers) * lanes;
  T* to = view.data + static_cast<ptrdiff_t>(first) * view.row_stride;
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(T) == 4) {
    if (count == held && has_quad_rows(view)) {
      for (size_t lane = 0; lane < held; lane += lanes) lanes_to_quad_rows(from + lane, from_stride, to + 4 * lane);
      return;
    }
  }
#endif
  if (count == held && view.column_stride == 1 && (lanes == 1 || view.columns >= kQuad<T>)) {
    for (size_t lane = 0; lane < held; lane += lanes) {
      lanes_to_rows(from + lane, from_stride, view.columns, to + static_cast<ptrdiff_t>(lane) * view.row_stride,
                    view.row_stride);
    }
#if HWY_TARGET != HWY_SCALAR
  } else if (count == held && has_narrow_rows(view)) {
    for (size_t lane = 0; lane < held; lane += lanes) {
      lanes_to_narrow_rows(from + lane, from_stride, view.columns, to + lane * view.columns);
    }
#endif
  } else if (count == held && view.row_stride == 1) {
    for (size_t c = 0; c < view.columns; ++c, from += from_stride, to += view.column_stride) {
      for (size_t lane = 0; lane < held; lane += lanes) hn::StoreU(hn::LoadU(d, from + lane), d, to + lane);
    }
  } else {
    for (size_t c = 0; c < view.columns; ++c, from += from_stride, to += view.column_stride) {
      T* sample = to;
      for (size_t lane = 0; lane < count; ++lane, sample += view.row_stride) *sample = from[lane];
    }
  }
}
