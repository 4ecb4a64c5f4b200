// The little of the C++ standard library that device code names, for the compiler that runs inside a program and has no
// headers of its own. Given to it under the names of the standard's headers; never included by anything else.
#pragma once

using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long long;

// What other compilers build in.
constexpr float __builtin_inff() { return __builtin_bit_cast(float, 0x7f800000u); }
constexpr double __builtin_inf() { return __builtin_bit_cast(double, 0x7ff0000000000000ull); }
constexpr float __builtin_nanf(const char*) { return __builtin_bit_cast(float, 0x7fc00000u); }
constexpr double __builtin_nan(const char*) { return __builtin_bit_cast(double, 0x7ff8000000000000ull); }

namespace std {

using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using size_t = decltype(sizeof 0);
using ptrdiff_t = long long;

using ::ceil;
using ::copysign;
using ::fabs;
using ::floor;
using ::fma;
using ::fmax;
using ::ldexp;
using ::memcpy;
using ::rint;
using ::round;
using ::sqrt;
__device__ __forceinline__ float abs(float x) { return ::fabsf(x); }
__device__ __forceinline__ double abs(double x) { return ::fabs(x); }
__device__ __forceinline__ bool signbit(float x) { return __builtin_bit_cast(int, x) < 0; }
__device__ __forceinline__ bool signbit(double x) { return __builtin_bit_cast(long long, x) < 0; }

template <class T>
struct numeric_limits;
template <>
struct numeric_limits<float> {
  static constexpr float epsilon() { return 0x1p-23f; }
  static constexpr float min() { return 0x1p-126f; }
  static constexpr float quiet_NaN() { return __builtin_nanf(""); }
};
template <>
struct numeric_limits<double> {
  static constexpr double epsilon() { return 0x1p-52; }
  static constexpr double min() { return 0x1p-1022; }
  static constexpr double quiet_NaN() { return __builtin_nan(""); }
};

template <class T, T constant>
struct integral_constant {
  static constexpr T value = constant;
};
template <class T, T... i>
struct integer_sequence {};
namespace detail {
template <int count, int... i>
struct CountUp : CountUp<count - 1, count - 1, i...> {};
template <int... i>
struct CountUp<0, i...> {
  using type = integer_sequence<int, i...>;
};
}  // namespace detail
template <class Int, Int count>  // of int only
using make_integer_sequence = typename detail::CountUp<count>::type;

// Host code mentions these; no device code uses one.
struct string_view {
  constexpr string_view(const char*) {}
  friend constexpr bool operator==(string_view, string_view) { return false; }
};
struct string {
  string() {}
  string(const char*) {}
  friend string operator+(string, string) { return {}; }
};
inline string to_string(int) { return {}; }
template <class T>
struct vector {
  template <class... Items>
  vector(const Items&...) {}
  void push_back(const T&) {}
  T& operator[](size_t) { return *static_cast<T*>(nullptr); }
};
template <class T, size_t count>
struct array {
  T of[count];
  constexpr const T& operator[](size_t i) const { return of[i]; }
  static constexpr size_t size() { return count; }
};
struct nullopt_t {};
inline constexpr nullopt_t nullopt;
template <class T>
struct optional {
  constexpr optional(const T&) {}
  constexpr optional(nullopt_t) {}
};
template <class T>
struct span {};

}  // namespace std
