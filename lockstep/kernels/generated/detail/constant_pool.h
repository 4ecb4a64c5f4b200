// The constants of generated code: each once, in as many copies as an instruction reads.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "lockstep/core/precision.h"
#include "lockstep/kernels/generated/detail/x86_encoder.h"

namespace lockstep::generated {

class ConstantPool {
 public:
  // AVX-512 instructions broadcast one number themselves, those of AVX2 read four or eight.
  ConstantPool(Precision precision, bool wide) : f64_(precision == Precision::f64), wide_(wide) {}

  // The number in every lane.
  Operand number(double number) {
    return bits(f64_ ? std::bit_cast<std::uint64_t>(number)
                     : std::uint64_t{std::bit_cast<std::uint32_t>(static_cast<float>(number))});
  }
  Operand sign_bit() { return bits(sign()); }
  Operand all_but_sign_bit() { return bits(sign() - 1); }

  // Filled up to a multiple of 64.
  std::vector<std::uint8_t> take() {
    bytes_.resize((bytes_.size() + 63) / 64 * 64);
    return std::move(bytes_);
  }

 private:
  std::uint64_t sign() const { return std::uint64_t{1} << (f64_ ? 63 : 31); }
  Operand bits(std::uint64_t bits) {
    const auto [found, is_new] = offsets_.try_emplace(bits, static_cast<int>(bytes_.size()));
    if (is_new) {
      const int size = f64_ ? 8 : 4, copies = wide_ ? 1 : 32 / size;
      for (int i = 0; i < copies; ++i) {
        for (int byte = 0; byte < size; ++byte) bytes_.push_back(static_cast<std::uint8_t>(bits >> (8 * byte)));
      }
    }
    return {Operand::Kind::pool, found->second, Gpr::rax, wide_};
  }

  bool f64_, wide_;
  std::map<std::uint64_t, int> offsets_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace lockstep::generated
