// liblockstep_c_readers: reads ONNX, Keras' files and Lockstep's HDF5 for liblockstep_c, which opens this library when
// it meets such a file, so that a host without such files carries nothing of HDF5 and protobuf. What crosses is plain
// bytes: a plan file, which holds every model.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/nn/guarded_calls.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/plan_file.h"

// 0: *bytes and *size hold the model. Otherwise 1 + the ErrorKind, and *bytes is the message, ended by a zero. The
// caller frees *bytes; it is null when even that ran out of memory.
extern "C" __attribute__((visibility("default"))) int lockstep_read_model(const char* path, unsigned char** bytes,
                                                                          std::size_t* size) noexcept {
  const auto hand_over = [&](const void* data, std::size_t count) {
    *bytes = static_cast<unsigned char*>(std::malloc(count + 1));
    *size = count;
    if (!*bytes) return;
    std::memcpy(*bytes, data, count);
    (*bytes)[count] = 0;
  };
  *bytes = nullptr;
  try {
    lockstep::nn::PlanFile plan{lockstep::nn::load(path)};
    // A host asks for the ranges of inputs: those of nets that equations call are among them where inputs tell.
    plan.model.inputs = lockstep::nn::watched_inputs(plan.model, lockstep::nn::Watch::all_inputs).inputs;
    const std::vector<std::byte> content = lockstep::nn::plan_bytes(plan);
    hand_over(content.data(), content.size());
    return 0;
  } catch (const lockstep::Error& error) {
    hand_over(error.what(), std::strlen(error.what()));
    return 1 + static_cast<int>(error.kind());
  } catch (const std::exception& error) {
    hand_over(error.what(), std::strlen(error.what()));
    return -1;
  }
}
