// Scratch of a calling thread, for calls that were given none.
#pragma once

#include <cstddef>
#include <span>

#include "lockstep/core/aligned_buffer.h"

namespace lockstep::mlp {

// Kept by each thread from call to call; grows to the largest plan it has met.
inline std::span<std::byte> kept_workspace(std::size_t bytes) {
  thread_local AlignedBuffer<std::byte> buffer;
  if (buffer.size() < bytes) buffer = AlignedBuffer<std::byte>(bytes);
  return {buffer.data(), bytes};
}

}  // namespace lockstep::mlp
