// The C interface: handles that know what they are, exceptions turned into statuses.
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <variant>

#include "bindings/c/load_model.h"
#include "bindings/c/lockstep.h"
#include "lockstep/core/error.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/mlp/plan.h"
#include "lockstep/nn/compile.h"

// Each handle begins with a mark, so that a handle of the wrong kind is noticed; freeing wipes it.
struct lockstep_model {
  std::uint64_t mark;
  lockstep::nn::Model model;
};
struct lockstep_plan {
  std::uint64_t mark;
  lockstep_precision precision;
  std::variant<lockstep::Plan<float>, lockstep::Plan<double>> plan;
  std::size_t inputs, outputs, workspace_bytes;
  std::string description;
};

namespace {

using lockstep::Error;
using lockstep::ErrorKind;
using lockstep::MatrixView;

constexpr std::uint64_t kModelMark = 0x6c6f636b6d6f646c;
constexpr std::uint64_t kPlanMark = 0x6c6f636b706c616e;

thread_local std::string last_error;

lockstep_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_argument:
      return LOCKSTEP_INVALID_ARGUMENT;
    case ErrorKind::model:
      return LOCKSTEP_BAD_MODEL;
    case ErrorKind::file:
      return LOCKSTEP_BAD_FILE;
    case ErrorKind::unsupported:
      return LOCKSTEP_UNSUPPORTED;
    case ErrorKind::cancelled:
      return LOCKSTEP_CANCELLED;
  }
  return LOCKSTEP_INTERNAL;
}

// Keeping the message may itself run out of memory: then there is none, and the status still tells.
void remember(const char* message) noexcept {
  try {
    last_error = message;
  } catch (...) {
    last_error.clear();
  }
}

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

[[noreturn]] void refuse(std::string field, std::string found, std::string expected, std::string remedy) {
  throw Error(ErrorKind::invalid_argument,
              {std::move(field), std::move(found), std::move(expected), std::move(remedy)});
}

void require_pointer(const void* pointer, const char* field) {
  if (!pointer) refuse(field, "a null pointer", "an address", "");
}

template <class Handle>
const Handle& require_handle(const Handle* handle, std::uint64_t mark, const char* field, const char* maker) {
  if (!handle) refuse(field, "a null pointer", "a handle", std::string("check the status of ") + maker);
  if (handle->mark != mark) refuse(field, "no such handle", std::string("one made by ") + maker, "was it freed");
  return *handle;
}
const lockstep_model& known(const lockstep_model* model) {
  return require_handle(model, kModelMark, "model", "lockstep_model_load");
}
const lockstep_plan& known(const lockstep_plan* plan) {
  return require_handle(plan, kPlanMark, "plan", "lockstep_compile");
}

// Written although nothing reads it before the memory goes back.
void wipe(volatile std::uint64_t& mark) { mark = 0; }

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

lockstep_status describe(const lockstep_model* model, std::size_t index, lockstep_feature* feature, bool input) {
  return guarded([&] {
    const lockstep::nn::Model& net = known(model).model;
    require_pointer(feature, "feature");
    const auto& features = (input ? net.inputs : net.outputs).front().features;
    if (index >= features.size()) {
      refuse("index", std::to_string(index), "less than " + std::to_string(features.size()), "count from 0");
    }
    const lockstep::nn::Feature& one = features[index];
    *feature = {one.name.c_str(), one.unit.c_str(), one.minimum, one.maximum};
  });
}

template <class T>
lockstep_status evaluate(const lockstep_plan* handle, std::size_t samples, MatrixView<const T> in, MatrixView<T> out,
                         void* workspace, std::size_t workspace_bytes) noexcept {
  return guarded([&] {
    const lockstep_plan& plan = known(handle);
    const auto* typed = std::get_if<lockstep::Plan<T>>(&plan.plan);
    if (!typed) {
      refuse("plan", plan.precision == LOCKSTEP_FLOAT32 ? "a float32 plan" : "a float64 plan",
             sizeof(T) == 4 ? "a float32 plan" : "a float64 plan", "compile one of that precision");
    }
    if (samples == 0) return;
    require_pointer(in.data, "in");
    require_pointer(out.data, "out");
    in.columns = plan.inputs;
    out.columns = plan.outputs;
    if (workspace) {
      typed->evaluate(in, out, {static_cast<std::byte*>(workspace), workspace_bytes});
    } else {
      typed->evaluate(in, out, 1);
    }
  });
}

}  // namespace

extern "C" {

int lockstep_abi_version(void) { return LOCKSTEP_ABI_VERSION; }
const char* lockstep_version(void) { return LOCKSTEP_VERSION_TEXT; }
const char* lockstep_last_error(void) { return last_error.c_str(); }

lockstep_status lockstep_model_load(const char* path, const lockstep_load_options* options, lockstep_model** model) {
  return guarded([&] {
    require_pointer(path, "path");
    require_pointer(model, "model");
    const lockstep_load_options known = known_fields(options, sizeof(lockstep_load_options), "load_options");
    lockstep::nn::ReadOptions read;
    if (known.activations) read.activations = known.activations;
    if (known.hidden_activation) read.hidden_activation = known.hidden_activation;
    *model =
        std::make_unique<lockstep_model>(lockstep_model{kModelMark, lockstep::c::load_model(path, read)}).release();
  });
}

void lockstep_model_free(lockstep_model* model) {
  if (!model || model->mark != kModelMark) return;
  wipe(model->mark);
  delete model;
}

size_t lockstep_model_inputs(const lockstep_model* model) {
  return model && model->mark == kModelMark ? model->model.inputs.front().features.size() : 0;
}
size_t lockstep_model_outputs(const lockstep_model* model) {
  return model && model->mark == kModelMark ? model->model.outputs.front().features.size() : 0;
}

lockstep_status lockstep_model_input(const lockstep_model* model, size_t index, lockstep_feature* feature) {
  return describe(model, index, feature, true);
}
lockstep_status lockstep_model_output(const lockstep_model* model, size_t index, lockstep_feature* feature) {
  return describe(model, index, feature, false);
}

lockstep_status lockstep_compile(const lockstep_model* model, const lockstep_compile_options* options,
                                 lockstep_plan** plan) {
  return guarded([&] {
    const lockstep::nn::Model& net = known(model).model;
    require_pointer(plan, "plan");
    const lockstep_compile_options known = known_fields(options, sizeof(lockstep_compile_options), "compile_options");
    lockstep::CpuTarget target = lockstep::best_cpu_target();
    if (known.cpu_target) {
      const auto named = lockstep::parse_cpu_target(known.cpu_target);
      if (!named) {
        refuse("compile_options.cpu_target", std::string("\"") + known.cpu_target + '"', "avx512, avx2, neon or scalar",
               "leave it NULL for the best of this machine");
      }
      target = *named;
    }
    const auto make = [&](auto compiled) {
      const std::size_t inputs = compiled.inputs(), outputs = compiled.outputs(), bytes = compiled.workspace_bytes();
      std::string description = compiled.description();
      *plan = new lockstep_plan{kPlanMark, known.precision, std::move(compiled),   inputs,
                                outputs,   bytes,           std::move(description)};
    };
    if (known.precision == LOCKSTEP_FLOAT32) {
      make(lockstep::nn::compile<float>(net, target));
    } else if (known.precision == LOCKSTEP_FLOAT64) {
      make(lockstep::nn::compile<double>(net, target));
    } else {
      refuse("compile_options.precision", std::to_string(known.precision), "LOCKSTEP_FLOAT32 or LOCKSTEP_FLOAT64", "");
    }
  });
}

void lockstep_plan_free(lockstep_plan* plan) {
  if (!plan || plan->mark != kPlanMark) return;
  wipe(plan->mark);
  delete plan;
}

size_t lockstep_plan_inputs(const lockstep_plan* plan) { return plan && plan->mark == kPlanMark ? plan->inputs : 0; }
size_t lockstep_plan_outputs(const lockstep_plan* plan) { return plan && plan->mark == kPlanMark ? plan->outputs : 0; }
lockstep_precision lockstep_plan_precision(const lockstep_plan* plan) {
  return plan && plan->mark == kPlanMark ? plan->precision : LOCKSTEP_FLOAT32;
}
const char* lockstep_plan_description(const lockstep_plan* plan) {
  return plan && plan->mark == kPlanMark ? plan->description.c_str() : "";
}
size_t lockstep_plan_workspace_bytes(const lockstep_plan* plan) {
  return plan && plan->mark == kPlanMark ? plan->workspace_bytes : 0;
}

lockstep_status lockstep_evaluate_f32(const lockstep_plan* plan, size_t samples, const float* in,
                                      ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, float* out,
                                      ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, void* workspace,
                                      size_t workspace_bytes) {
  return evaluate<float>(plan, samples, {in, samples, 0, in_sample_stride, in_feature_stride},
                         {out, samples, 0, out_sample_stride, out_feature_stride}, workspace, workspace_bytes);
}

lockstep_status lockstep_evaluate_f64(const lockstep_plan* plan, size_t samples, const double* in,
                                      ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, double* out,
                                      ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, void* workspace,
                                      size_t workspace_bytes) {
  return evaluate<double>(plan, samples, {in, samples, 0, in_sample_stride, in_feature_stride},
                          {out, samples, 0, out_sample_stride, out_feature_stride}, workspace, workspace_bytes);
}

}  // extern "C"
