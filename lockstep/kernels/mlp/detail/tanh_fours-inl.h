// tanh of four registers of AVX2 together. No include guard: part of kernels-inl.h.
//
// A permutation of 8 numbers takes Zen 2 and 3 both of the pipes that multiply, and a table of 16 needs two of them
// with a blend, three operations on Intel's newer cores. So the tables are looked up byte by byte: the intervals of 32
// numbers are a register of bytes, of which one shuffle makes a byte of 32 entries, and interleaving bytes and then
// pairs of them makes the entries. 9.1 cycles for 8 numbers on Zen 3, where permutations take 12.2
// (benchmarks/README.md, "AVX2").
#if HWY_TARGET == HWY_AVX2

// Byte b of all 16 entries, in order.
struct TableBytes {
  alignas(16) uint8_t of[4][16];
};
constexpr TableBytes bytes_of(const TanhTable& table) {
  TableBytes bytes{};
  for (size_t i = 0; i < 16; ++i) {
    for (size_t b = 0; b < 4; ++b) {
      bytes.of[b][i] = static_cast<uint8_t>(std::bit_cast<uint32_t>(table.entry[i]) >> 8 * b);
    }
  }
  return bytes;
}

// The entries of four registers, whose intervals pack_intervals() made one.
HWY_INLINE void look_up_four(const TableBytes& table, __m256i intervals, __m256 (&entries)[4]) {
  const auto bytes = [&](size_t b) HWY_ATTR {
    const __m128i of = _mm_load_si128(reinterpret_cast<const __m128i*>(table.of[b]));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(of), intervals);
  };
  const __m256i b0 = bytes(0), b1 = bytes(1);
  const __m256i low01 = _mm256_unpacklo_epi8(b0, b1), high01 = _mm256_unpackhi_epi8(b0, b1);
  const __m256i b2 = bytes(2), b3 = bytes(3);
  const __m256i low23 = _mm256_unpacklo_epi8(b2, b3), high23 = _mm256_unpackhi_epi8(b2, b3);
  entries[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(low01, low23));
  entries[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(low01, low23));
  entries[2] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(high01, high23));
  entries[3] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(high01, high23));
}

// In each half the intervals of four numbers of each register, modulo 16, one register after another.
HWY_INLINE __m256i pack_intervals(const __m256i (&interval)[4]) {
  const __m256i mask = _mm256_set1_epi16(15);
  const __m256i low = _mm256_and_si256(_mm256_packus_epi32(interval[0], interval[1]), mask);
  const __m256i high = _mm256_and_si256(_mm256_packus_epi32(interval[2], interval[3]), mask);
  return _mm256_packus_epi16(low, high);
}

// Keeps the compiler from moving loads and stores across: in an order of its own it stores numbers in between.
HWY_INLINE void keep_order() { asm volatile("" ::: "memory"); }

// In place for `groups` times four registers, register i of group g at place(g, i); before(g) comes before that. The
// intervals of a group are found while the quotients of the one before it are taken: Zen 3's schedulers hold less than
// a group.
template <class Place, class Before>
HWY_INLINE void tanh_fours(size_t groups, Place place, Before before) {
  using D = Register<float>;
  using L = HwyLane<D>;
  const D d;
  static constexpr TableBytes kPoints = bytes_of(tanh_points()), kTanh = bytes_of(tanh_of_points());
  const auto intervals = [&](size_t g) HWY_ATTR __attribute__((always_inline)) {
    __m256i interval[4];
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) interval[i] = tanh_start<L>(hn::LoadU(d, place(g, i))).interval.raw;
    return pack_intervals(interval);
  };
  if (groups == 0) return;
  __m256i now = intervals(0);
  for (size_t g = 0; g < groups; ++g) {
    before(g);
    __m256 distance[4], tanh[4];
    look_up_four(kPoints, now, distance);
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {  // arguments are read again: 16 registers do not hold them as well
      const auto magnitude = tanh_start<L>(hn::LoadU(d, place(g, i))).magnitude;
      distance[i] = L::sub(magnitude, hn::Vec<D>{distance[i]}).raw;
    }
    keep_order();
    look_up_four(kTanh, now, tanh);
    keep_order();
    now = intervals(g + 1 < groups ? g + 1 : g);
    keep_order();
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
      const auto t = hn::Vec<D>{tanh[i]};
      TanhParts<L> parts = tanh_parts<L>({t, t, hn::Vec<D>{distance[i]}, tanh_slope<L>(t)});
      parts.argument = hn::LoadU(d, place(g, i));
      hn::StoreU(tanh_end<L>(parts), d, place(g, i));
    }
  }
}

#endif
