// The C interface to nets on a GPU: device plans, and evaluations queued on the host program's stream.
#include <cstddef>
#include <string>
#include <utility>
#include <variant>

#include "bindings/c/handles.h"
#include "bindings/c/lockstep.h"
#include "bindings/c/ports.h"
#include "lockstep/core/matrix_precision.h"
#include "lockstep/core/matrix_view.h"
#include "lockstep/nn/device_net_plan.h"

struct lockstep_device_plan {
  std::uint64_t mark;
  std::variant<lockstep::nn::DeviceNetPlan<float>, lockstep::nn::DeviceNetPlan<double>> plan;
  lockstep::c::Ports inputs, outputs;
  std::string description;
};

namespace {

using namespace lockstep::c;
using lockstep::MatrixView;
using lockstep::nn::DeviceNetPlan;

constexpr std::uint64_t kDevicePlanMark = 0x6c6f636b64657669;

const lockstep_device_plan& known(const lockstep_device_plan* plan) {
  return require_handle(plan, kDevicePlanMark, "plan", "lockstep_device_compile");
}
bool is_known(const lockstep_device_plan* plan) { return plan && plan->mark == kDevicePlanMark; }

template <class T>
lockstep_device_plan* lower(const lockstep::nn::Model& net, int device, lockstep::MatrixPrecision matrices) {
  auto plan = DeviceNetPlan<T>::compile(net, device, matrices);
  std::string description = plan.description();
  Ports inputs = ports_of_plan(plan.inputs()), outputs = ports_of_plan(plan.outputs());
  return new lockstep_device_plan{kDevicePlanMark, std::move(plan), std::move(inputs), std::move(outputs),
                                  std::move(description)};
}

template <class T>
const DeviceNetPlan<T>& require_precision(const lockstep_device_plan& handle) {
  if (const auto* const plan = std::get_if<DeviceNetPlan<T>>(&handle.plan)) return *plan;
  refuse_precision(sizeof(T) == 4, "lockstep_device_options.precision");
}

template <class T>
lockstep_status enqueue(const lockstep_device_plan* handle, void* stream, MatrixView<const T> in,
                        MatrixView<T> out) noexcept {
  return guarded([&] {
    const lockstep_device_plan& known_plan = known(handle);
    const DeviceNetPlan<T>& plan = require_precision<T>(known_plan);
    if (in.rows == 0) return;
    require_pointer(in.data, "in");
    require_pointer(out.data, "out");
    in.columns = known_plan.inputs.features;
    out.columns = known_plan.outputs.features;
    plan.enqueue(stream, in, out);
  });
}

template <class T, class In, class Out>
lockstep_status enqueue_ports(const lockstep_device_plan* handle, void* stream, std::size_t samples, const In* in,
                              std::size_t in_ports, const Out* out, std::size_t out_ports) noexcept {
  return guarded([&] {
    const lockstep_device_plan& known_plan = known(handle);
    const DeviceNetPlan<T>& plan = require_precision<T>(known_plan);
    const auto from = views_of<const T>(in, in_ports, known_plan.inputs, samples, "in");
    const auto to = views_of<T>(out, out_ports, known_plan.outputs, samples, "out");
    if (samples > 0) plan.enqueue(stream, from.span(), to.span());
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
    const std::string mode = wanted.matrix_precision == nullptr ? "f32" : wanted.matrix_precision;
    const auto matrices = lockstep::parse_matrix_precision(mode);
    if (!matrices) refuse("device_options.matrix_precision", '"' + mode + '"', "f32, tf32, bf16 or fp16", "");
    *plan = precision == lockstep::Precision::f32 ? lower<float>(net, wanted.device, *matrices)
                                                  : lower<double>(net, wanted.device, *matrices);
  });
}

void lockstep_device_plan_free(lockstep_device_plan* plan) {
  if (!is_known(plan)) return;
  wipe(plan->mark);
  delete plan;
}

size_t lockstep_device_plan_inputs(const lockstep_device_plan* plan) {
  return is_known(plan) ? plan->inputs.features : 0;
}
size_t lockstep_device_plan_outputs(const lockstep_device_plan* plan) {
  return is_known(plan) ? plan->outputs.features : 0;
}
size_t lockstep_device_plan_ports(const lockstep_device_plan* plan, lockstep_direction direction) {
  return is_known(plan) ? count_ports(direction, plan->inputs.list, plan->outputs.list) : 0;
}
lockstep_status lockstep_device_plan_port(const lockstep_device_plan* plan, lockstep_direction direction, size_t index,
                                          lockstep_port* port) {
  return guarded([&] {
    require_direction(direction);
    const lockstep_device_plan& handle = known(plan);
    const auto& list = (direction == LOCKSTEP_INPUT ? handle.inputs : handle.outputs).list;
    require_pointer(port, "port");
    require_index(index, list.size());
    *port = list[index];
  });
}
lockstep_status lockstep_device_plan_port_index(const lockstep_device_plan* plan, lockstep_direction direction,
                                                const char* name, size_t* index) {
  return guarded([&] {
    const lockstep_device_plan& handle = known(plan);
    require_pointer(index, "index");
    *index = index_of_port(direction, handle.inputs, handle.outputs, name);
  });
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

lockstep_status lockstep_enqueue_ports_f32(const lockstep_device_plan* plan, void* stream, size_t samples,
                                           const lockstep_input_f32* in, size_t in_ports,
                                           const lockstep_output_f32* out, size_t out_ports) {
  return enqueue_ports<float>(plan, stream, samples, in, in_ports, out, out_ports);
}
lockstep_status lockstep_enqueue_ports_f64(const lockstep_device_plan* plan, void* stream, size_t samples,
                                           const lockstep_input_f64* in, size_t in_ports,
                                           const lockstep_output_f64* out, size_t out_ports) {
  return enqueue_ports<double>(plan, stream, samples, in, in_ports, out, out_ports);
}

}  // extern "C"
