// Generated code against the operations one by one in plain C++.
#include "lockstep/kernels/generated/lane_code.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#if defined(__linux__)
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/kernels/generated/testing/called.h"
#include "lockstep/kernels/tile.h"

namespace lockstep {
namespace {

using generated::testing::called;
using generated::testing::functions_for;

constexpr std::size_t kBases = 4;  // 0: read alone; 1: written alone; 2: both; 3: carried
constexpr std::uint32_t kRows = 6;

template <class T>
struct Rows {
  std::array<AlignedBuffer<T>, kBases> each;
  Rows() {
    for (auto& rows : each) rows = AlignedBuffer<T>(kRows * kTileLanes);
  }
  std::array<T*, kBases> bases() { return {each[0].data(), each[1].data(), each[2].data(), each[3].data()}; }
};

template <class T>
T operation(LaneOp op, T a, T b, T c) {
  switch (op) {
    case LaneOp::add:
      return a + b;
    case LaneOp::subtract:
      return a - b;
    case LaneOp::multiply:
      return a * b;
    case LaneOp::divide:
      return a / b;
    case LaneOp::fma:
      return std::fma(a, b, c);
    case LaneOp::nfma:
      return std::fma(-a, b, c);
    case LaneOp::square_root:
      return std::sqrt(a);
    case LaneOp::absolute:
      return std::fabs(a);
    case LaneOp::negate:
      return -a;
    case LaneOp::floor:
      return std::floor(a);
    case LaneOp::round:
      return std::rint(a);
    case LaneOp::minimum:
      return b < a ? b : a;
    case LaneOp::maximum:
      return b > a ? b : a;
    case LaneOp::keep_nan:
      return b == b ? a : b;
    case LaneOp::less:
      return a < b ? T(1) : T(0);
    case LaneOp::less_or_equal:
      return a <= b ? T(1) : T(0);
    case LaneOp::equal:
      return a == b ? T(1) : T(0);
    case LaneOp::select:
      return a != 0 ? b : c;
    default:
      return a;
  }
}

// `lanes` of the lanes of one register, whichever it is: registers of one lane do.
template <class T>
void interpret(const LaneProgram& program, Rows<T>& rows, std::size_t lanes_of_register, std::size_t registers,
               std::size_t repeats) {
  const auto together = static_cast<std::size_t>(program.together());
  for (std::size_t first = 0; first < registers; first += together) {
    for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
      for (std::size_t lane = 0; lane < lanes_of_register; ++lane) {
        std::vector<T> values;
        for (const LaneInstruction& i : program.instructions()) {
          const auto place = [&]() -> T& {
            return rows
                .each[i.place.base][i.place.row * kTileLanes + (first + i.place.beside) * lanes_of_register + lane];
          };
          T value{};
          if (i.op == LaneOp::constant) {
            value = static_cast<T>(i.number);
          } else if (i.op == LaneOp::load) {
            value = place();
          } else if (i.op == LaneOp::store) {
            place() = values[i.read[0]];
          } else {
            const auto read = [&](int k) { return k < operands_of(i.op) ? values[i.read[k]] : T{}; };
            value = is_call(i.op)
                        ? called(i.op, program.functions()[i.function].context.get(), read(0), read(1), read(2))
                        : operation(i.op, read(0), read(1), read(2));
          }
          values.push_back(value);
        }
        for (const auto& [loaded, made] : program.carried()) {
          const LanePlace place = program.instructions()[loaded].place;
          rows.each[place.base][place.row * kTileLanes + (first + place.beside) * lanes_of_register + lane] =
              values[made];
        }
      }
    }
  }
}

template <class T>
T special(std::mt19937_64& random) {
  using Limits = std::numeric_limits<T>;
  const std::array<T, 10> numbers = {T(0),
                                     -T(0),
                                     T(1),
                                     -T(1),
                                     Limits::infinity(),
                                     -Limits::infinity(),
                                     Limits::quiet_NaN(),
                                     Limits::denorm_min(),
                                     -Limits::min() / 2,
                                     Limits::max()};
  return numbers[random() % numbers.size()];
}

template <class T>
T any_number(std::mt19937_64& random) {
  if (random() % 6 == 0) return special<T>(random);
  return static_cast<T>(std::normal_distribution<double>(0, 2)(random));
}

// Values are read soon and late, rows overwritten while their numbers are still wanted; one instruction in `calls` is a
// call, none for 0.
template <class T>
LaneProgram random_program(std::mt19937_64& random, int length, int together, unsigned calls,
                           const std::array<LaneFunction, 3>& functions) {
  LaneProgram program(together);
  std::vector<LaneProgram::Value> values;
  const auto place = [&](std::uint8_t base) {
    return LanePlace{base, static_cast<std::uint8_t>(random() % static_cast<unsigned>(together)),
                     static_cast<std::uint32_t>(random() % kRows)};
  };
  const auto any = [&] { return values[random() % values.size()]; };
  std::vector<LaneProgram::Value> carried;
  for (std::size_t i = random() % 8; i > 0; --i) {
    const auto loaded = program.load(place(3));
    if (std::find(carried.begin(), carried.end(), loaded) == carried.end()) carried.push_back(loaded);
  }
  values = carried;
  for (int i = 0; i < 4; ++i) values.push_back(program.load(place(random() % 2 == 0 ? 0 : 2)));
  constexpr auto kFirst = static_cast<unsigned>(LaneOp::add), kEnd = static_cast<unsigned>(LaneOp::select) + 1;
  constexpr auto kFirstCall = static_cast<unsigned>(LaneOp::function);
  for (int i = 0; i < length; ++i) {
    if (calls > 0 && random() % calls == 0) {
      const unsigned which = random() % 3;
      values.push_back(program.call(static_cast<LaneOp>(kFirstCall + which), functions[which], any(), any(), any()));
      continue;
    }
    switch (random() % 12) {
      case 0:
        values.push_back(program.load(place(random() % 2 == 0 ? 0 : 2)));
        break;
      case 1:
        values.push_back(program.constant(static_cast<double>(any_number<T>(random))));
        break;
      case 2:
        program.store(any(), place(random() % 3 == 0 ? 1 : 2));
        break;
      default:
        values.push_back(program.apply(static_cast<LaneOp>(kFirst + random() % (kEnd - kFirst)), any(), any(), any()));
    }
  }
  for (std::uint32_t row = 0; row < kRows; ++row) program.store(any(), {1, 0, row});
  // Some of them in rings: each becomes what another was.
  for (const auto loaded : carried) {
    program.carry(loaded, random() % 2 == 0 ? carried[random() % carried.size()] : any());
  }
  return program;
}

template <class T>
void expect_the_same(const Rows<T>& found, const Rows<T>& expected, const char* what) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  for (std::size_t base = 0; base < kBases; ++base) {
    for (std::size_t i = 0; i < kRows * kTileLanes; ++i) {
      const T a = found.each[base][i], b = expected.each[base][i];
      if (std::isnan(a) && std::isnan(b)) continue;
      ASSERT_EQ(std::bit_cast<Bits>(a), std::bit_cast<Bits>(b))
          << what << ", array " << base << ", number " << i << ": " << a << " for " << b;
    }
  }
}

std::vector<CpuTarget> targets_with_code() {
  std::vector<CpuTarget> targets;
  for (const CpuTarget target : available_cpu_targets()) {
    if (LaneCode::available(target)) targets.push_back(target);
  }
  return targets;
}

template <class T>
class LaneCodeOf : public testing::Test {};
using Numbers = testing::Types<float, double>;
TYPED_TEST_SUITE(LaneCodeOf, Numbers);

template <class T>
void expect_the_bits_of_operations(unsigned calls) {
  for (const CpuTarget target : targets_with_code()) {
    const std::size_t lanes = (target == CpuTarget::avx512 ? 64 : 32) / sizeof(T);
    std::mt19937_64 random(7);
    for (int trial = 0; trial < 100; ++trial) {
      const int together = 1 + trial % 2, length = trial < 20 ? trial : 20 + static_cast<int>(random() % 300);
      const LaneProgram program = random_program<T>(random, length, together, calls, functions_for<T>(target));
      const auto code = LaneCode::compile(program, kPrecisionOf<T>, target);
      ASSERT_NE(code, nullptr);
      Rows<T> found, expected;
      for (std::size_t base = 0; base < kBases; ++base) {
        for (T& number : std::span(found.each[base].data(), kRows * kTileLanes)) number = any_number<T>(random);
        std::copy_n(found.each[base].data(), kRows * kTileLanes, expected.each[base].data());
      }
      const std::size_t all = kTileLanes / lanes, registers = (1 + random() % (all / 2)) * 2;
      const std::size_t repeats = 1 + random() % 3;
      code->run(found.bases().data(), registers, repeats);
      interpret(program, expected, lanes, registers, repeats);
      const std::string what = std::string(to_string(target)) + ", trial " + std::to_string(trial);
      expect_the_same(found, expected, what.c_str());
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TYPED_TEST(LaneCodeOf, random_programs_have_the_bits_of_their_operations) {
  expect_the_bits_of_operations<TypeParam>(0);
}
TYPED_TEST(LaneCodeOf, what_is_needed_later_outlasts_calls) {
  if (!kCallsFunctions) GTEST_SKIP() << "this compiler's code cannot be called";
  for (const unsigned calls : {2u, 5u, 40u}) expect_the_bits_of_operations<TypeParam>(calls);
}

TYPED_TEST(LaneCodeOf, code_keeps_what_its_functions_read) {
  using T = TypeParam;
  for (const CpuTarget target : targets_with_code()) {
    std::shared_ptr<const LaneCode> code;
    std::weak_ptr<const void> context;
    {
      LaneProgram program;
      const LaneFunction function = functions_for<T>(target)[1];
      context = function.context;
      const auto a = program.load({0, 0, 0});
      program.store(program.call(LaneOp::function_of_two, function, a, a), {1, 0, 0});
      code = LaneCode::compile(program, kPrecisionOf<T>, target);
    }
    ASSERT_NE(code, nullptr);
    EXPECT_FALSE(context.expired());
    code = nullptr;
    EXPECT_TRUE(context.expired());
  }
}

template <class T>
void expect_the_bits_of_operations_of_one_lane(unsigned calls) {
  for (const CpuTarget target : targets_with_code()) {
    std::mt19937_64 random(11);
    for (int trial = 0; trial < 200; ++trial) {
      const int length = trial < 20 ? trial : 20 + static_cast<int>(random() % 300);
      const LaneProgram program = random_program<T>(random, length, 1, calls, functions_for<T>(target));
      const auto code = LaneCode::compile_one_lane(program, kPrecisionOf<T>, target);
      ASSERT_NE(code, nullptr);
      Rows<T> found, expected;
      std::array<AlignedBuffer<T>, kBases> packed;
      std::array<T*, kBases> bases;
      for (std::size_t base = 0; base < kBases; ++base) {
        packed[base] = AlignedBuffer<T>(kRows + 16 / sizeof(T));
        bases[base] = packed[base].data();
        for (std::size_t row = 0; row < kRows; ++row)
          packed[base][row] = expected.each[base][row * kTileLanes] = any_number<T>(random);
        for (std::size_t i = kRows; i < packed[base].size(); ++i) packed[base][i] = T(-7);
      }
      const std::size_t repeats = 1 + random() % 3;
      code->run(bases.data(), 1, repeats);
      interpret(program, expected, 1, 1, repeats);
      for (std::size_t base = 0; base < kBases; ++base) {
        for (std::size_t row = 0; row < kRows; ++row) found.each[base][row * kTileLanes] = packed[base][row];
        for (std::size_t i = kRows; i < packed[base].size(); ++i) ASSERT_EQ(packed[base][i], T(-7));  // only read
      }
      const std::string what = std::string(to_string(target)) + ", trial " + std::to_string(trial);
      expect_the_same(found, expected, what.c_str());
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TYPED_TEST(LaneCodeOf, code_of_one_lane_has_the_bits_of_the_operations) {
  expect_the_bits_of_operations_of_one_lane<TypeParam>(0);
}
TYPED_TEST(LaneCodeOf, code_of_one_lane_keeps_what_is_needed_after_calls) {
  if (!kCallsFunctions) GTEST_SKIP() << "this compiler's code cannot be called";
  for (const unsigned calls : {2u, 5u, 40u}) expect_the_bits_of_operations_of_one_lane<TypeParam>(calls);
}

TYPED_TEST(LaneCodeOf, more_values_than_registers_are_kept) {
  using T = TypeParam;
  for (const CpuTarget target : targets_with_code()) {
    LaneProgram program;
    std::vector<LaneProgram::Value> values;
    for (std::uint32_t i = 0; i < 100; ++i) {
      values.push_back(program.add(program.load({0, 0, i % kRows}), program.constant(i)));
    }
    auto sum = program.constant(0);
    for (const auto value : values) sum = program.fma(value, value, sum);
    program.store(sum, {1, 0, 0});
    const auto code = LaneCode::compile(program, kPrecisionOf<T>, target);
    ASSERT_NE(code, nullptr);
    Rows<T> found, expected;
    for (std::size_t i = 0; i < kRows * kTileLanes; ++i)
      found.each[0][i] = expected.each[0][i] = static_cast<T>(0.1 * i);
    const std::size_t lanes = (target == CpuTarget::avx512 ? 64 : 32) / sizeof(T);
    code->run(found.bases().data(), kTileLanes / lanes);
    interpret(program, expected, lanes, kTileLanes / lanes, 1);
    expect_the_same(found, expected, "spilled");
  }
}

TEST(LaneCode, can_be_switched_off) {
  setenv("LOCKSTEP_GENERATED_CODE", "off", 1);
  LaneProgram program;
  program.store(program.load({0, 0, 0}), {1, 0, 0});
  EXPECT_EQ(LaneCode::compile(program, Precision::f64, best_cpu_target()), nullptr);
  EXPECT_TRUE(targets_with_code().empty());
  unsetenv("LOCKSTEP_GENERATED_CODE");
}

#if defined(__linux__)
// In a process that has given up making memory executable (PR_SET_MDWE, Linux 6.3).
TEST(LaneCode, there_is_none_where_the_system_refuses_executable_memory) {
  if (targets_with_code().empty()) GTEST_SKIP() << "no code is generated for this machine";
  LaneProgram program;
  program.store(program.load({0, 0, 0}), {1, 0, 0});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    constexpr int kSetMdwe = 65, kRefuseExecGain = 1;
    if (prctl(kSetMdwe, kRefuseExecGain, 0, 0, 0) != 0) _exit(2);
    _exit(LaneCode::compile(program, Precision::f64, best_cpu_target()) == nullptr ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this system has no such promise";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

}  // namespace
}  // namespace lockstep
