// What lies behind the handles of lockstep.h, and how failures become statuses.
#pragma once

#include <cfenv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/c/lockstep.h"
#include "lockstep/core/error.h"
#include "lockstep/core/precision.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/net_derivatives.h"
#include "lockstep/nn/net_plan.h"

namespace lockstep::c {

struct Ports {
  std::vector<lockstep_port> list;  // names are the plan's
  std::size_t features = 0;
};

}  // namespace lockstep::c

// Each handle begins with a mark, so that a handle of the wrong kind is noticed; freeing wipes it.
struct lockstep_model {
  std::uint64_t mark;
  lockstep::nn::Model model;
};
struct lockstep_plan {
  std::uint64_t mark;
  lockstep_precision precision;
  std::variant<lockstep::nn::NetPlan<float>, lockstep::nn::NetPlan<double>> plan;
  lockstep::c::Ports inputs, outputs;
  std::size_t workspace_bytes;
  std::string description;
  // None where it was not asked for.
  std::variant<std::monostate, lockstep::nn::NetDerivatives<float>, lockstep::nn::NetDerivatives<double>> derivatives;
};

namespace lockstep::c {

constexpr std::uint64_t kModelMark = 0x6c6f636b6d6f646c;
constexpr std::uint64_t kPlanMark = 0x6c6f636b706c616e;

lockstep_status status_of(ErrorKind kind);
// What lockstep_last_error() says on this thread: the first 1,023 bytes, or fewer and " ...". Takes no memory, which
// may be what ran out.
void remember(const char* message) noexcept;

// The flags of floating-point exceptions that the host's own arithmetic raised, for calls that come once: Fortran
// programs report them when they stop, and none of ours is theirs.
class HostFlags {
 public:
#if defined(__x86_64__)  // MXCSR alone: glibc would write the x87's as well, where they may trap
  HostFlags() noexcept : flags_(__builtin_ia32_stmxcsr() & kFlags) {}
  ~HostFlags() { __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~kFlags) | flags_); }

 private:
  static constexpr unsigned kFlags = 0x3f;
  unsigned flags_;
#else
  HostFlags() noexcept { std::fegetexceptflag(&flags_, FE_ALL_EXCEPT); }
  ~HostFlags() { std::fesetexceptflag(&flags_, FE_ALL_EXCEPT); }

 private:
  std::fexcept_t flags_{};
#endif

 public:
  HostFlags(const HostFlags&) = delete;
  HostFlags& operator=(const HostFlags&) = delete;
};

template <class Work>
lockstep_status guarded(const Work& work) noexcept {
  try {
    work();
    return LOCKSTEP_OK;
  } catch (const Error& error) {
    remember(error.what());
    return status_of(error.kind());
  } catch (const std::bad_alloc&) {
    remember("out of memory");
    return LOCKSTEP_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    remember(error.what());
    return LOCKSTEP_INTERNAL;
  } catch (...) {
    remember("an exception of unknown type");
    return LOCKSTEP_INTERNAL;
  }
}

[[noreturn]] inline void refuse(std::string field, std::string found, std::string expected, std::string remedy) {
  throw Error(ErrorKind::invalid_argument,
              {std::move(field), std::move(found), std::move(expected), std::move(remedy)});
}

// A plan of the other precision than the arrays'; `key`: where C asks for a precision when it compiles one.
[[noreturn]] inline void refuse_precision(bool wants_single, const char* key) {
  refuse("plan", wants_single ? "a float64 plan" : "a float32 plan",
         wants_single ? "a float32 plan, for arrays of float" : "a float64 plan, for arrays of double",
         std::string("compile one of that precision: in C ") + key +
             ", in Fortran precision=" + (wants_single ? "lockstep_float32" : "lockstep_float64"));
}

// Written although nothing reads it before the memory goes back.
inline void wipe(volatile std::uint64_t& mark) { mark = 0; }

// The fields of an options struct that the caller knew of, the rest as defaults; `least` is its first version's size.
template <class Options>
Options known_fields(const Options* options, std::size_t least, const char* name) {
  Options result{};
  result.size = sizeof result;
  if (!options) return result;
  if (options->size < least) {
    refuse(std::string(name) + ".size", std::to_string(options->size), std::to_string(sizeof result),
           std::string("set it to sizeof(lockstep_") + name + ")");
  }
  if (options->size > sizeof result) {
    refuse(std::string(name) + ".size", std::to_string(options->size), "at most " + std::to_string(sizeof result),
           "the program was built for a newer Lockstep than the one loaded: update the library");
  }
  std::memcpy(&result, options, options->size);
  return result;
}

// The precision an options struct asks for. C programs can put any number into an enum; loading one that C++ does not
// know is undefined, so its bytes are read.
inline Precision known_precision(const lockstep_precision& wanted, const char* field) {
  static_assert(sizeof wanted == sizeof(int));
  int number = 0;
  std::memcpy(&number, &wanted, sizeof number);
  if (number == LOCKSTEP_FLOAT32) return Precision::f32;
  if (number == LOCKSTEP_FLOAT64) return Precision::f64;
  refuse(field, std::to_string(number), "LOCKSTEP_FLOAT32 or LOCKSTEP_FLOAT64", "");
}

inline void require_pointer(const void* pointer, const char* field) {
  if (!pointer) refuse(field, "a null pointer", "an address", "");
}

// A file's name. The empty one would be the field of a message about it.
inline void require_path(const char* path) {
  require_pointer(path, "path");
  if (*path == 0) throw Error(ErrorKind::file, {"path", "\"\"", "the name of a file", ""});
}

template <class Handle>
const Handle& require_handle(const Handle* handle, std::uint64_t mark, const char* field, const char* maker) {
  if (!handle) refuse(field, "a null pointer", "a handle", std::string("check the status of ") + maker);
  if (handle->mark != mark) refuse(field, "no such handle", std::string("one made by ") + maker, "was it freed");
  return *handle;
}
inline const lockstep_model& known(const lockstep_model* model) {
  return require_handle(model, kModelMark, "model", "lockstep_model_load");
}
inline const lockstep_plan& known(const lockstep_plan* plan) {
  return require_handle(plan, kPlanMark, "plan", "lockstep_compile");
}

}  // namespace lockstep::c
