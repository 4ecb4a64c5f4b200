// The C interface: models and plans, what they are made of and say of themselves.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/c/handles.h"
#include "bindings/c/load_model.h"
#include "bindings/c/lockstep.h"
#include "bindings/c/ports.h"
#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/tile.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/derivative_model.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/nn/plan_file.h"

namespace lockstep::c {
namespace {
// No destructor: a thread would have to register it when it first fails, which takes memory.
constinit thread_local char last_error[1024] = {};

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }  // of UTF-8
}  // namespace

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

void remember(const char* message) noexcept {
  constexpr char kCut[] = " ...";
  std::size_t length = std::strlen(message);
  const bool fits = length < sizeof last_error;
  if (!fits) {
    length = sizeof last_error - sizeof kCut;
    while (length > 0 && !begins_character(message[length])) --length;
  }
  std::memmove(last_error, message, length);
  std::memcpy(last_error + length, fits ? "" : kCut, fits ? 1 : sizeof kCut);
}

}  // namespace lockstep::c

namespace {

using namespace lockstep::c;

template <class List>
std::size_t features_of(const List& ports) {
  std::size_t count = 0;
  for (const auto& port : ports) count += port.features.size();
  return count;
}

const std::vector<lockstep::nn::Port>& ports_of(const lockstep_model& model, lockstep_direction direction) {
  return direction == LOCKSTEP_INPUT ? model.model.inputs : model.model.outputs;
}

lockstep_status describe(const lockstep_model* model, std::size_t index, lockstep_feature* feature,
                         lockstep_direction direction) {
  return guarded([&] {
    const auto& ports = ports_of(known(model), direction);
    require_pointer(feature, "feature");
    require_index(index, features_of(ports));
    std::size_t port = 0;
    for (; index >= ports[port].features.size(); ++port) index -= ports[port].features.size();
    const lockstep::nn::Feature& one = ports[port].features[index];
    *feature = {one.name.c_str(), one.unit.c_str(), one.minimum, one.maximum};
  });
}

// A plan's first evaluation brings its code and weights into memory, which takes tens of microseconds: it is made here,
// so that the host's first step costs no more than its second. By the functions that the host will call: a page of code
// never run costs 6 us.
template <class T>
void warm_up(const lockstep_plan& plan) {
  using Input = std::conditional_t<sizeof(T) == 4, lockstep_input_f32, lockstep_input_f64>;
  using Output = std::conditional_t<sizeof(T) == 4, lockstep_output_f32, lockstep_output_f64>;
  constexpr std::size_t kSamples = 2 * lockstep::kTileLanes + 3;  // whole tiles and the rest beside them
  std::vector<T> in_numbers(kSamples * plan.inputs.features), out_numbers(kSamples * plan.outputs.features);
  std::vector<Input> in;
  std::vector<Output> out;
  for (const lockstep_port& port : plan.inputs.list) {
    in.push_back({in_numbers.data() + kSamples * port.first_feature, static_cast<std::ptrdiff_t>(port.features), 1});
  }
  for (const lockstep_port& port : plan.outputs.list) {
    out.push_back({out_numbers.data() + kSamples * port.first_feature, static_cast<std::ptrdiff_t>(port.features), 1});
  }
  const bool single = in.size() == 1 && out.size() == 1;
  for (const std::size_t samples : {kSamples, std::size_t{1}}) {
    if constexpr (sizeof(T) == 4) {
      lockstep_evaluate_ports_f32(&plan, samples, in.data(), in.size(), out.data(), out.size(), nullptr, 0);
      if (!single) continue;
      lockstep_evaluate_f32(&plan, samples, in[0].data, in[0].sample_stride, 1, out[0].data, out[0].sample_stride, 1,
                            nullptr, 0);
    } else {
      lockstep_evaluate_ports_f64(&plan, samples, in.data(), in.size(), out.data(), out.size(), nullptr, 0);
      if (!single) continue;
      lockstep_evaluate_f64(&plan, samples, in[0].data, in[0].sample_stride, 1, out[0].data, out[0].sample_stride, 1,
                            nullptr, 0);
    }
  }
}

lockstep_plan* warmed_up(std::unique_ptr<lockstep_plan> plan) {
  plan->precision == LOCKSTEP_FLOAT32 ? warm_up<float>(*plan) : warm_up<double>(*plan);
  return plan.release();
}

template <class T>
std::unique_ptr<lockstep_plan> lower(const lockstep::nn::Model& net, lockstep::CpuTarget target, bool derivatives) {
  auto plan = lockstep::nn::NetPlan<T>::compile(net, target);
  const std::size_t bytes = plan.workspace_bytes();
  std::string description = plan.description();
  Ports inputs = ports_of_plan(plan.inputs()), outputs = ports_of_plan(plan.outputs());
  const lockstep_precision precision = sizeof(T) == 4 ? LOCKSTEP_FLOAT32 : LOCKSTEP_FLOAT64;
  auto made = std::make_unique<lockstep_plan>(lockstep_plan{
      kPlanMark, precision, std::move(plan), std::move(inputs), std::move(outputs), bytes, std::move(description), {}});
  if (derivatives) made->derivatives = lockstep::nn::compile_derivatives<T>(net, target);
  return made;
}
std::unique_ptr<lockstep_plan> lower(const lockstep::nn::Model& net, lockstep::Precision precision,
                                     lockstep::CpuTarget target, bool derivatives) {
  return precision == lockstep::Precision::f32 ? lower<float>(net, target, derivatives)
                                               : lower<double>(net, target, derivatives);
}

// Whoever loads a plan for another machine chose no target: the file and how to make another are named.
void require_target(const lockstep::nn::PlanFile& file, const char* path) {
  try {
    lockstep::require_cpu_target(file.target);
  } catch (const lockstep::Error& error) {
    throw lockstep::Error(error.kind(),
                          {path, "a plan for " + error.found(), error.expected(),
                           "make it again from the model: lockstep compile, without --target or with one of these"});
  }
}

}  // namespace

extern "C" {

int lockstep_abi_version(void) { return LOCKSTEP_ABI_VERSION; }
const char* lockstep_version(void) { return LOCKSTEP_VERSION_TEXT; }
const char* lockstep_last_error(void) { return lockstep::c::last_error; }

lockstep_status lockstep_model_load(const char* path, const lockstep_load_options* options, lockstep_model** model) {
  const lockstep::c::HostFlags flags;
  const lockstep::StandardReading arithmetic;
  return guarded([&] {
    require_path(path);
    require_pointer(model, "model");
    const lockstep_load_options known = known_fields(options, sizeof(lockstep_load_options), "load_options");
    lockstep::nn::ReadOptions read;
    if (known.activations) read.activations = known.activations;
    if (known.hidden_activation) read.hidden_activation = known.hidden_activation;
    *model =
        std::make_unique<lockstep_model>(lockstep_model{kModelMark, lockstep::c::load_model(path, read)}).release();
  });
}

lockstep_status lockstep_model_derivative(const lockstep_model* model, lockstep_derivative which,
                                          lockstep_model** derivative) {
  const lockstep::c::HostFlags flags;
  return guarded([&] {
    const lockstep::nn::Model& known_model = known(model).model;
    require_pointer(derivative, "derivative");
    if (which != LOCKSTEP_JVP && which != LOCKSTEP_VJP && which != LOCKSTEP_JACOBIAN) {
      throw lockstep::Error(lockstep::ErrorKind::invalid_argument,
                            {"which", std::to_string(which), "LOCKSTEP_JVP, LOCKSTEP_VJP or LOCKSTEP_JACOBIAN", {}});
    }
    static_assert(LOCKSTEP_VJP == int(lockstep::nn::Derivative::vjp));
    static_assert(LOCKSTEP_JACOBIAN == int(lockstep::nn::Derivative::jacobian));
    auto made = lockstep::nn::derivative_model(known_model, static_cast<lockstep::nn::Derivative>(which));
    *derivative = std::make_unique<lockstep_model>(lockstep_model{kModelMark, std::move(made)}).release();
  });
}

void lockstep_model_free(lockstep_model* model) {
  if (!model || model->mark != kModelMark) return;
  wipe(model->mark);
  delete model;
}

size_t lockstep_model_inputs(const lockstep_model* model) {
  return model && model->mark == kModelMark ? features_of(model->model.inputs) : 0;
}
size_t lockstep_model_outputs(const lockstep_model* model) {
  return model && model->mark == kModelMark ? features_of(model->model.outputs) : 0;
}
size_t lockstep_model_ports(const lockstep_model* model, lockstep_direction direction) {
  return model && model->mark == kModelMark ? count_ports(direction, model->model.inputs, model->model.outputs) : 0;
}
lockstep_status lockstep_model_port(const lockstep_model* model, lockstep_direction direction, size_t index,
                                    lockstep_port* port) {
  return guarded([&] {
    require_direction(direction);
    const auto& ports = ports_of(known(model), direction);
    require_pointer(port, "port");
    require_index(index, ports.size());
    *port = {ports[index].name.c_str(), ports[index].features.size(), features_of(std::span(ports).first(index))};
  });
}

lockstep_status lockstep_model_input(const lockstep_model* model, size_t index, lockstep_feature* feature) {
  return describe(model, index, feature, LOCKSTEP_INPUT);
}
lockstep_status lockstep_model_output(const lockstep_model* model, size_t index, lockstep_feature* feature) {
  return describe(model, index, feature, LOCKSTEP_OUTPUT);
}

lockstep_status lockstep_compile(const lockstep_model* model, const lockstep_compile_options* options,
                                 lockstep_plan** plan) {
  const lockstep::c::HostFlags flags;
  const lockstep::StandardReading arithmetic;
  return guarded([&] {
    const lockstep::nn::Model& net = known(model).model;
    require_pointer(plan, "plan");
    const lockstep_compile_options known =
        known_fields(options, offsetof(lockstep_compile_options, derivatives), "compile_options");
    lockstep::CpuTarget target = lockstep::best_cpu_target();
    if (known.cpu_target) {
      const auto named = lockstep::parse_cpu_target(known.cpu_target);
      if (!named) {
        refuse("compile_options.cpu_target", std::string("\"") + known.cpu_target + '"', "avx512, avx2, neon or scalar",
               "leave it NULL for the best of this machine");
      }
      target = *named;
    }
    const lockstep::Precision precision = known_precision(known.precision, "compile_options.precision");
    *plan = warmed_up(lower(net, precision, target, known.derivatives != 0));
  });
}

lockstep_status lockstep_plan_load(const char* path, lockstep_plan** plan) {
  const lockstep::c::HostFlags flags;
  const lockstep::StandardReading arithmetic;
  return guarded([&] {
    require_path(path);
    require_pointer(plan, "plan");
    std::unique_ptr<lockstep_plan> made;
    {
      const lockstep::nn::PlanFile file = lockstep::nn::read_plan(path);
      require_target(file, path);
      made = lower(file.model, file.precision, file.target, true);
    }  // what the file held goes before the weights are brought into the caches
    *plan = warmed_up(std::move(made));
  });
}

void lockstep_plan_free(lockstep_plan* plan) {
  if (!plan || plan->mark != kPlanMark) return;
  wipe(plan->mark);
  delete plan;
}

size_t lockstep_plan_inputs(const lockstep_plan* plan) {
  return plan && plan->mark == kPlanMark ? plan->inputs.features : 0;
}
size_t lockstep_plan_outputs(const lockstep_plan* plan) {
  return plan && plan->mark == kPlanMark ? plan->outputs.features : 0;
}
size_t lockstep_plan_ports(const lockstep_plan* plan, lockstep_direction direction) {
  if (!plan || plan->mark != kPlanMark) return 0;
  return count_ports(direction, plan->inputs.list, plan->outputs.list);
}
lockstep_status lockstep_plan_port(const lockstep_plan* plan, lockstep_direction direction, size_t index,
                                   lockstep_port* port) {
  return guarded([&] {
    require_direction(direction);
    const lockstep_plan& handle = known(plan);
    const auto& list = (direction == LOCKSTEP_INPUT ? handle.inputs : handle.outputs).list;
    require_pointer(port, "port");
    require_index(index, list.size());
    *port = list[index];
  });
}
lockstep_status lockstep_plan_port_index(const lockstep_plan* plan, lockstep_direction direction, const char* name,
                                         size_t* index) {
  return guarded([&] {
    const lockstep_plan& handle = known(plan);
    require_pointer(index, "index");
    *index = index_of_port(direction, handle.inputs, handle.outputs, name);
  });
}
lockstep_precision lockstep_plan_precision(const lockstep_plan* plan) {
  return plan && plan->mark == kPlanMark ? plan->precision : LOCKSTEP_FLOAT32;
}
const char* lockstep_plan_description(const lockstep_plan* plan) {
  return plan && plan->mark == kPlanMark ? plan->description.c_str() : "";
}
size_t lockstep_plan_workspace_bytes(const lockstep_plan* plan) {
  return plan && plan->mark == kPlanMark ? plan->workspace_bytes : 0;
}

}  // extern "C"
