// The C interface to nets on a GPU: device plans, and evaluations queued on the host program's stream.
#include <cstddef>
#include <string>
#include <type_traits>
#include <variant>

#include "bindings/c/handles.h"
#include "bindings/c/lockstep.h"
#include "lockstep/core/matrix_precision.h"
#include "lockstep/core/matrix_view.h"
#include "lockstep/kernels/cuda/device_plan.h"
#include "lockstep/nn/model.h"

struct lockstep_device_plan {
  std::uint64_t mark;
  std::variant<lockstep::cuda::DevicePlan<float>, lockstep::cuda::DevicePlan<double>> plan;
  std::string description;
};

namespace {

using namespace lockstep::c;
using lockstep::MatrixView;
using lockstep::cuda::DevicePlan;

constexpr std::uint64_t kDevicePlanMark = 0x6c6f636b64657669;

const lockstep_device_plan& known(const lockstep_device_plan* plan) {
  return require_handle(plan, kDevicePlanMark, "plan", "lockstep_device_compile");
}
bool is_known(const lockstep_device_plan* plan) { return plan && plan->mark == kDevicePlanMark; }

template <class T>
lockstep_device_plan* lower(const lockstep::Mlp& mlp, int device, lockstep::MatrixPrecision matrices) {
  auto plan = DevicePlan<T>::compile(mlp, device, matrices);
  std::string description = plan.description();
  return new lockstep_device_plan{kDevicePlanMark, std::move(plan), std::move(description)};
}

template <class T>
lockstep_status enqueue(const lockstep_device_plan* handle, void* stream, MatrixView<const T> in, MatrixView<T> out) {
  return guarded([&] {
    const auto* const plan = std::get_if<DevicePlan<T>>(&known(handle).plan);
    if (plan == nullptr) {
      refuse("plan", sizeof(T) == 4 ? "a float64 plan" : "a float32 plan",
             sizeof(T) == 4 ? "a float32 plan" : "a float64 plan", "compile one of that precision");
    }
    if (in.rows == 0) return;
    require_pointer(in.data, "in");
    require_pointer(out.data, "out");
    in.columns = plan->inputs();
    out.columns = plan->outputs();
    plan->enqueue(stream, in, out);
  });
}

}  // namespace

extern "C" {

lockstep_status lockstep_device_compile(const lockstep_model* model, const lockstep_device_options* options,
                                        lockstep_device_plan** plan) {
  return guarded([&] {
    const lockstep::nn::Model& net = lockstep::c::known(model).model;
    require_pointer(plan, "plan");
    const lockstep_device_options wanted =
        known_fields(options, offsetof(lockstep_device_options, matrix_precision), "device_options");
    const lockstep::Precision precision = known_precision(wanted.precision, "device_options.precision");
    const lockstep::Mlp mlp = lockstep::nn::to_mlp(net);
    const std::string mode = wanted.matrix_precision == nullptr ? "f32" : wanted.matrix_precision;
    const auto matrices = lockstep::parse_matrix_precision(mode);
    if (!matrices) refuse("device_options.matrix_precision", '"' + mode + '"', "f32, tf32, bf16 or fp16", "");
    *plan = precision == lockstep::Precision::f32 ? lower<float>(mlp, wanted.device, *matrices)
                                                  : lower<double>(mlp, wanted.device, *matrices);
  });
}

void lockstep_device_plan_free(lockstep_device_plan* plan) {
  if (!is_known(plan)) return;
  wipe(plan->mark);
  delete plan;
}

size_t lockstep_device_plan_inputs(const lockstep_device_plan* plan) {
  return is_known(plan) ? std::visit([](const auto& lowered) { return lowered.inputs(); }, plan->plan) : 0;
}
size_t lockstep_device_plan_outputs(const lockstep_device_plan* plan) {
  return is_known(plan) ? std::visit([](const auto& lowered) { return lowered.outputs(); }, plan->plan) : 0;
}
const char* lockstep_device_plan_description(const lockstep_device_plan* plan) {
  return is_known(plan) ? plan->description.c_str() : "";
}

lockstep_status lockstep_enqueue_f32(const lockstep_device_plan* plan, void* stream, size_t samples, const float* in,
                                     ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, float* out,
                                     ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride) {
  return enqueue<float>(plan, stream, {in, samples, 0, in_sample_stride, in_feature_stride},
                        {out, samples, 0, out_sample_stride, out_feature_stride});
}
lockstep_status lockstep_enqueue_f64(const lockstep_device_plan* plan, void* stream, size_t samples, const double* in,
                                     ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, double* out,
                                     ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride) {
  return enqueue<double>(plan, stream, {in, samples, 0, in_sample_stride, in_feature_stride},
                         {out, samples, 0, out_sample_stride, out_feature_stride});
}

}  // extern "C"
