// The C interface's evaluating: one array in and one out, an array for each port, products with the Jacobian.
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "bindings/c/handles.h"
#include "bindings/c/lockstep.h"
#include "bindings/c/ports.h"
#include "lockstep/core/matrix_batch_view.h"
#include "lockstep/core/matrix_overlap.h"
#include "lockstep/core/matrix_view.h"

namespace {

using namespace lockstep::c;
using lockstep::Error;
using lockstep::ErrorKind;
using lockstep::MatrixView;

template <class T>
void require_precision(const lockstep_plan& plan) {
  if (std::holds_alternative<lockstep::nn::NetPlan<T>>(plan.plan)) return;
  refuse_precision(sizeof(T) == 4, "lockstep_compile_options.precision");
}

template <class T>
const lockstep::nn::NetDerivatives<T>& require_derivatives(const lockstep_plan& plan) {
  if (const auto* derivatives = std::get_if<lockstep::nn::NetDerivatives<T>>(&plan.derivatives)) return *derivatives;
  throw Error(
      ErrorKind::unsupported,
      {"plan", "a plan without derivatives", "one with them",
       "compile it with derivatives: in C lockstep_compile_options.derivatives = 1, in Fortran derivatives=.true."});
}

// Products take more scratch than evaluations, whose size is what a caller may have given.
void require_derivative_workspace(std::size_t found, std::size_t expected) {
  if (found >= expected) return;
  refuse("workspace", std::to_string(found) + " bytes", std::to_string(expected),
         "give what lockstep_plan_derivative_workspace_bytes(plan) says");
}

// The functions of plain pointers take the one array there is.
void require_one_port(const lockstep_plan& plan) {
  const auto require = [](const std::vector<lockstep_port>& ports, const char* which) {
    if (ports.size() == 1) return;
    std::string names;
    for (const lockstep_port& port : ports) names += (names.empty() ? "\"" : ", \"") + std::string(port.name) + '"';
    refuse("plan", std::to_string(ports.size()) + " " + which + " ports (" + names + ")", "one",
           "give an array for each port: lockstep_evaluate_ports_f32 and the like, in Fortran evaluate_ports");
  };
  require(plan.inputs.list, "input");
  require(plan.outputs.list, "output");
}

template <class T>
const lockstep::nn::NetPlan<T>& require_plan_of_one_port(const lockstep_plan* handle) {
  const lockstep_plan& plan = known(handle);
  require_precision<T>(plan);
  require_one_port(plan);
  return *std::get_if<lockstep::nn::NetPlan<T>>(&plan.plan);
}

template <class T>
void evaluate_views(const lockstep::nn::NetPlan<T>& plan, const MatrixView<const T>& in, const MatrixView<T>& out,
                    void* workspace, std::size_t workspace_bytes) {
  if (workspace) {
    plan.evaluate({&in, 1}, {&out, 1}, {static_cast<std::byte*>(workspace), workspace_bytes});
  } else {
    plan.evaluate(in, out, 1);
  }
}

template <class T>
lockstep_status evaluate(const lockstep_plan* handle, std::size_t samples, MatrixView<const T> in, MatrixView<T> out,
                         void* workspace, std::size_t workspace_bytes) noexcept {
  return guarded([&] {
    const auto& plan = require_plan_of_one_port<T>(handle);
    if (samples == 0) return;
    require_pointer(in.data, "in");
    require_pointer(out.data, "out");
    in.columns = handle->inputs.features;
    out.columns = handle->outputs.features;
    evaluate_views(plan, in, out, workspace, workspace_bytes);
  });
}

// Each slice of `out` may lie where its own of `in` does as one evaluation's may. Asked of all before the first is
// computed; where the strides between slices agree they are all as the first, of which its evaluation asks.
template <class T>
void require_slices_beside(MatrixView<const T> in, std::ptrdiff_t in_stride, MatrixView<T> out,
                           std::ptrdiff_t out_stride, std::size_t slices) {
  if (in_stride == out_stride) return;
  for (std::size_t slice = 0;; in.data += in_stride, out.data += out_stride) {
    if (!lockstep::may_write_beside(out, in)) {
      const std::string number = " (slice " + std::to_string(slice) + ", counted from 0)";
      lockstep::refuse_overlap("out" + number, places_of(out), "in" + number, places_of(in));
    }
    if (++slice == slices) return;
  }
}

// Nor may a slice of `out` lie where another of `out` or `in` does.
template <class T>
void require_slices_apart(const MatrixView<const T>& in, std::ptrdiff_t in_stride, const MatrixView<T>& out,
                          std::ptrdiff_t out_stride, std::size_t slices) {
  const lockstep::Slices from{places_of(in), slices, in_stride}, to{places_of(out), slices, out_stride};
  constexpr std::size_t kMost = std::size_t{1} << 56;
  if (slices > kMost) refuse("slices", std::to_string(slices), "as many as memory holds", "give their number");
  if (slices_share_memory(to, to)) lockstep::refuse_two_results("out", to.first, "another slice of out", to.first);
  if (slices_share_memory(to, from)) lockstep::refuse_overlap("out", to.first, "another slice of in", from.first);
  require_slices_beside(in, in_stride, out, out_stride, slices);
}

// Nor may the scratch lie where any slice does; each evaluation asks so of its own.
template <class T>
void require_slices_apart_from(std::span<std::byte> workspace, const MatrixView<const T>& in, std::ptrdiff_t in_stride,
                               const MatrixView<T>& out, std::ptrdiff_t out_stride, std::size_t slices) {
  const lockstep::Places scratch = places_of(lockstep::workspace_extent(workspace, workspace.size()), sizeof(T));
  if (shares_memory({places_of(in), slices, in_stride}, scratch)) lockstep::refuse_workspace("in", places_of(in));
  if (shares_memory({places_of(out), slices, out_stride}, scratch)) lockstep::refuse_workspace("out", places_of(out));
}

template <class T>
lockstep_status evaluate_slices(const lockstep_plan* handle, std::size_t slices, MatrixView<const T> in,
                                std::ptrdiff_t in_stride, MatrixView<T> out, std::ptrdiff_t out_stride, void* workspace,
                                std::size_t workspace_bytes) noexcept {
  return guarded([&] {
    const auto& plan = require_plan_of_one_port<T>(handle);
    if (slices == 0 || in.rows == 0) return;
    require_pointer(in.data, "in");
    require_pointer(out.data, "out");
    in.columns = handle->inputs.features;
    out.columns = handle->outputs.features;
    require_slices_apart(in, in_stride, out, out_stride, slices);
    if (workspace) {
      const std::size_t used = std::min(workspace_bytes, plan.workspace_bytes());  // too few are refused by the first
      require_slices_apart_from({static_cast<std::byte*>(workspace), used}, in, in_stride, out, out_stride, slices);
    }
    for (std::size_t slice = 0;; in.data += in_stride, out.data += out_stride) {
      evaluate_views(plan, in, out, workspace, workspace_bytes);
      if (++slice == slices) return;
    }
  });
}

// A product with the Jacobian, or with its transpose: they differ in which side the vectors belong to.
enum class Side { jvp, vjp };
template <Side side, class T, class... Arguments>
void multiply_by(const lockstep::nn::NetDerivatives<T>& derivatives, const Arguments&... arguments) {
  if constexpr (side == Side::jvp) {
    derivatives.jvp(arguments...);
  } else {
    derivatives.vjp(arguments...);
  }
}

template <Side side, class T>
lockstep_status multiply(const lockstep_plan* handle, MatrixView<const T> in, MatrixView<const T> vector,
                         MatrixView<T> out, MatrixView<T> result, void* workspace,
                         std::size_t workspace_bytes) noexcept {
  return guarded([&] {
    const lockstep_plan& plan = known(handle);
    require_precision<T>(plan);
    require_one_port(plan);
    const auto& derivatives = require_derivatives<T>(plan);
    if (in.rows == 0) return;
    require_pointer(in.data, "in");
    require_pointer(vector.data, side == Side::vjp ? "out_bar" : "in_dot");
    require_pointer(result.data, side == Side::vjp ? "in_bar" : "out_dot");
    in.columns = plan.inputs.features;
    out.columns = plan.outputs.features;
    vector.columns = side == Side::vjp ? out.columns : in.columns;
    result.columns = side == Side::vjp ? in.columns : out.columns;
    if (!workspace) return multiply_by<side>(derivatives, in, vector, out, result);
    require_derivative_workspace(workspace_bytes, derivatives.workspace_bytes());
    using In = std::span<const MatrixView<const T>>;
    using Out = std::span<const MatrixView<T>>;
    multiply_by<side>(derivatives, In(&in, 1), In(&vector, 1), Out(&out, 1), Out(&result, 1),
                      std::span(static_cast<std::byte*>(workspace), workspace_bytes));
  });
}

template <Side side, class T, class In, class Out>
lockstep_status multiply_ports(const lockstep_plan* handle, std::size_t samples, const In* in, const In* vector,
                               const Out* out, const Out* result, std::size_t in_ports, std::size_t out_ports,
                               void* workspace, std::size_t workspace_bytes) noexcept {
  return guarded([&] {
    const lockstep_plan& plan = known(handle);
    require_precision<T>(plan);
    const auto& derivatives = require_derivatives<T>(plan);
    constexpr bool vjp = side == Side::vjp;
    const Ports &before = vjp ? plan.outputs : plan.inputs, &after = vjp ? plan.inputs : plan.outputs;
    const std::size_t vectors_given = vjp ? out_ports : in_ports, results_given = vjp ? in_ports : out_ports;
    const auto from = views_of<const T>(in, in_ports, plan.inputs, samples, "in");
    const auto vectors = views_of<const T>(vector, vectors_given, before, samples, vjp ? "out_bar" : "in_dot");
    Views<T> values;
    if (out) values = views_of<T>(out, out_ports, plan.outputs, samples, "out", true);
    const auto results = views_of<T>(result, results_given, after, samples, vjp ? "in_bar" : "out_dot");
    if (samples == 0) return;
    const std::span<const MatrixView<T>> wanted = values.span();
    if (!workspace) return multiply_by<side>(derivatives, from.span(), vectors.span(), wanted, results.span());
    require_derivative_workspace(workspace_bytes, derivatives.workspace_bytes());
    multiply_by<side>(derivatives, from.span(), vectors.span(), wanted, results.span(),
                      std::span(static_cast<std::byte*>(workspace), workspace_bytes));
  });
}

// The Jacobian's numbers of rows and columns are the plan's.
template <class T, class In, class Out>
lockstep_status differentiate(const lockstep_plan* handle, const In* in, std::size_t in_ports, const Out* out,
                              std::size_t out_ports, lockstep::MatrixBatchView<T> jacobian, void* workspace,
                              std::size_t workspace_bytes) noexcept {
  return guarded([&] {
    const lockstep_plan& plan = known(handle);
    require_precision<T>(plan);
    const auto& derivatives = require_derivatives<T>(plan);
    const auto from = views_of<const T>(in, in_ports, plan.inputs, jacobian.samples, "in");
    Views<T> values;
    if (out) values = views_of<T>(out, out_ports, plan.outputs, jacobian.samples, "out", true);
    if (jacobian.samples == 0) return;
    require_pointer(jacobian.data, "jacobian");
    jacobian.rows = plan.outputs.features;
    jacobian.columns = plan.inputs.features;
    if (!workspace) return derivatives.jacobian(from.span(), values.span(), jacobian);
    require_derivative_workspace(workspace_bytes, derivatives.workspace_bytes());
    derivatives.jacobian(from.span(), values.span(), jacobian, {static_cast<std::byte*>(workspace), workspace_bytes});
  });
}

template <class T, class In, class Out>
lockstep_status evaluate_ports(const lockstep_plan* handle, std::size_t samples, const In* in, std::size_t in_ports,
                               const Out* out, std::size_t out_ports, void* workspace,
                               std::size_t workspace_bytes) noexcept {
  return guarded([&] {
    const lockstep_plan& plan = known(handle);
    require_precision<T>(plan);
    const auto* typed = std::get_if<lockstep::nn::NetPlan<T>>(&plan.plan);
    const auto from = views_of<const T>(in, in_ports, plan.inputs, samples, "in");
    const auto to = views_of<T>(out, out_ports, plan.outputs, samples, "out");
    if (samples == 0) return;
    if (!workspace) return typed->evaluate(from.span(), to.span(), 1);
    typed->evaluate(from.span(), to.span(), std::span(static_cast<std::byte*>(workspace), workspace_bytes));
  });
}

}  // namespace

extern "C" {

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

lockstep_status lockstep_evaluate_slices_f32(const lockstep_plan* plan, size_t slices, size_t samples, const float* in,
                                             ptrdiff_t in_slice_stride, ptrdiff_t in_sample_stride,
                                             ptrdiff_t in_feature_stride, float* out, ptrdiff_t out_slice_stride,
                                             ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, void* workspace,
                                             size_t workspace_bytes) {
  return evaluate_slices<float>(plan, slices, {in, samples, 0, in_sample_stride, in_feature_stride}, in_slice_stride,
                                {out, samples, 0, out_sample_stride, out_feature_stride}, out_slice_stride, workspace,
                                workspace_bytes);
}

lockstep_status lockstep_evaluate_slices_f64(const lockstep_plan* plan, size_t slices, size_t samples, const double* in,
                                             ptrdiff_t in_slice_stride, ptrdiff_t in_sample_stride,
                                             ptrdiff_t in_feature_stride, double* out, ptrdiff_t out_slice_stride,
                                             ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, void* workspace,
                                             size_t workspace_bytes) {
  return evaluate_slices<double>(plan, slices, {in, samples, 0, in_sample_stride, in_feature_stride}, in_slice_stride,
                                 {out, samples, 0, out_sample_stride, out_feature_stride}, out_slice_stride, workspace,
                                 workspace_bytes);
}

lockstep_status lockstep_evaluate_ports_f32(const lockstep_plan* plan, size_t samples, const lockstep_input_f32* in,
                                            size_t in_ports, const lockstep_output_f32* out, size_t out_ports,
                                            void* workspace, size_t workspace_bytes) {
  return evaluate_ports<float>(plan, samples, in, in_ports, out, out_ports, workspace, workspace_bytes);
}

lockstep_status lockstep_evaluate_ports_f64(const lockstep_plan* plan, size_t samples, const lockstep_input_f64* in,
                                            size_t in_ports, const lockstep_output_f64* out, size_t out_ports,
                                            void* workspace, size_t workspace_bytes) {
  return evaluate_ports<double>(plan, samples, in, in_ports, out, out_ports, workspace, workspace_bytes);
}

size_t lockstep_plan_derivative_workspace_bytes(const lockstep_plan* plan) {
  if (!plan || plan->mark != kPlanMark) return 0;
  if (const auto* narrow = std::get_if<lockstep::nn::NetDerivatives<float>>(&plan->derivatives)) {
    return narrow->workspace_bytes();
  }
  const auto* wide = std::get_if<lockstep::nn::NetDerivatives<double>>(&plan->derivatives);
  return wide ? wide->workspace_bytes() : 0;
}

lockstep_status lockstep_jvp_f32(const lockstep_plan* plan, size_t samples, const float* in, ptrdiff_t in_sample_stride,
                                 ptrdiff_t in_feature_stride, const float* in_dot, ptrdiff_t in_dot_sample_stride,
                                 ptrdiff_t in_dot_feature_stride, float* out, ptrdiff_t out_sample_stride,
                                 ptrdiff_t out_feature_stride, float* out_dot, ptrdiff_t out_dot_sample_stride,
                                 ptrdiff_t out_dot_feature_stride, void* workspace, size_t workspace_bytes) {
  return multiply<Side::jvp, float>(plan, {in, samples, 0, in_sample_stride, in_feature_stride},
                                    {in_dot, samples, 0, in_dot_sample_stride, in_dot_feature_stride},
                                    {out, samples, 0, out_sample_stride, out_feature_stride},
                                    {out_dot, samples, 0, out_dot_sample_stride, out_dot_feature_stride}, workspace,
                                    workspace_bytes);
}

lockstep_status lockstep_jvp_f64(const lockstep_plan* plan, size_t samples, const double* in,
                                 ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, const double* in_dot,
                                 ptrdiff_t in_dot_sample_stride, ptrdiff_t in_dot_feature_stride, double* out,
                                 ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, double* out_dot,
                                 ptrdiff_t out_dot_sample_stride, ptrdiff_t out_dot_feature_stride, void* workspace,
                                 size_t workspace_bytes) {
  return multiply<Side::jvp, double>(plan, {in, samples, 0, in_sample_stride, in_feature_stride},
                                     {in_dot, samples, 0, in_dot_sample_stride, in_dot_feature_stride},
                                     {out, samples, 0, out_sample_stride, out_feature_stride},
                                     {out_dot, samples, 0, out_dot_sample_stride, out_dot_feature_stride}, workspace,
                                     workspace_bytes);
}

lockstep_status lockstep_vjp_f32(const lockstep_plan* plan, size_t samples, const float* in, ptrdiff_t in_sample_stride,
                                 ptrdiff_t in_feature_stride, const float* out_bar, ptrdiff_t out_bar_sample_stride,
                                 ptrdiff_t out_bar_feature_stride, float* out, ptrdiff_t out_sample_stride,
                                 ptrdiff_t out_feature_stride, float* in_bar, ptrdiff_t in_bar_sample_stride,
                                 ptrdiff_t in_bar_feature_stride, void* workspace, size_t workspace_bytes) {
  return multiply<Side::vjp, float>(plan, {in, samples, 0, in_sample_stride, in_feature_stride},
                                    {out_bar, samples, 0, out_bar_sample_stride, out_bar_feature_stride},
                                    {out, samples, 0, out_sample_stride, out_feature_stride},
                                    {in_bar, samples, 0, in_bar_sample_stride, in_bar_feature_stride}, workspace,
                                    workspace_bytes);
}

lockstep_status lockstep_vjp_f64(const lockstep_plan* plan, size_t samples, const double* in,
                                 ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, const double* out_bar,
                                 ptrdiff_t out_bar_sample_stride, ptrdiff_t out_bar_feature_stride, double* out,
                                 ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, double* in_bar,
                                 ptrdiff_t in_bar_sample_stride, ptrdiff_t in_bar_feature_stride, void* workspace,
                                 size_t workspace_bytes) {
  return multiply<Side::vjp, double>(plan, {in, samples, 0, in_sample_stride, in_feature_stride},
                                     {out_bar, samples, 0, out_bar_sample_stride, out_bar_feature_stride},
                                     {out, samples, 0, out_sample_stride, out_feature_stride},
                                     {in_bar, samples, 0, in_bar_sample_stride, in_bar_feature_stride}, workspace,
                                     workspace_bytes);
}

lockstep_status lockstep_jvp_ports_f32(const lockstep_plan* plan, size_t samples, const lockstep_input_f32* in,
                                       const lockstep_input_f32* in_dot, const lockstep_output_f32* out,
                                       const lockstep_output_f32* out_dot, size_t in_ports, size_t out_ports,
                                       void* workspace, size_t workspace_bytes) {
  return multiply_ports<Side::jvp, float>(plan, samples, in, in_dot, out, out_dot, in_ports, out_ports, workspace,
                                          workspace_bytes);
}

lockstep_status lockstep_jvp_ports_f64(const lockstep_plan* plan, size_t samples, const lockstep_input_f64* in,
                                       const lockstep_input_f64* in_dot, const lockstep_output_f64* out,
                                       const lockstep_output_f64* out_dot, size_t in_ports, size_t out_ports,
                                       void* workspace, size_t workspace_bytes) {
  return multiply_ports<Side::jvp, double>(plan, samples, in, in_dot, out, out_dot, in_ports, out_ports, workspace,
                                           workspace_bytes);
}

lockstep_status lockstep_vjp_ports_f32(const lockstep_plan* plan, size_t samples, const lockstep_input_f32* in,
                                       const lockstep_input_f32* out_bar, const lockstep_output_f32* out,
                                       const lockstep_output_f32* in_bar, size_t in_ports, size_t out_ports,
                                       void* workspace, size_t workspace_bytes) {
  return multiply_ports<Side::vjp, float>(plan, samples, in, out_bar, out, in_bar, in_ports, out_ports, workspace,
                                          workspace_bytes);
}

lockstep_status lockstep_vjp_ports_f64(const lockstep_plan* plan, size_t samples, const lockstep_input_f64* in,
                                       const lockstep_input_f64* out_bar, const lockstep_output_f64* out,
                                       const lockstep_output_f64* in_bar, size_t in_ports, size_t out_ports,
                                       void* workspace, size_t workspace_bytes) {
  return multiply_ports<Side::vjp, double>(plan, samples, in, out_bar, out, in_bar, in_ports, out_ports, workspace,
                                           workspace_bytes);
}

lockstep_status lockstep_jacobian_f32(const lockstep_plan* plan, size_t samples, const float* in,
                                      ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, float* out,
                                      ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, float* jacobian,
                                      ptrdiff_t jacobian_sample_stride, ptrdiff_t jacobian_output_stride,
                                      ptrdiff_t jacobian_input_stride, void* workspace, size_t workspace_bytes) {
  const lockstep_input_f32 from{in, in_sample_stride, in_feature_stride};
  const lockstep_output_f32 to{out, out_sample_stride, out_feature_stride};
  return differentiate<float>(
      plan, &from, 1, &to, 1,
      {jacobian, samples, 0, 0, jacobian_sample_stride, jacobian_output_stride, jacobian_input_stride}, workspace,
      workspace_bytes);
}

lockstep_status lockstep_jacobian_f64(const lockstep_plan* plan, size_t samples, const double* in,
                                      ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride, double* out,
                                      ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, double* jacobian,
                                      ptrdiff_t jacobian_sample_stride, ptrdiff_t jacobian_output_stride,
                                      ptrdiff_t jacobian_input_stride, void* workspace, size_t workspace_bytes) {
  const lockstep_input_f64 from{in, in_sample_stride, in_feature_stride};
  const lockstep_output_f64 to{out, out_sample_stride, out_feature_stride};
  return differentiate<double>(
      plan, &from, 1, &to, 1,
      {jacobian, samples, 0, 0, jacobian_sample_stride, jacobian_output_stride, jacobian_input_stride}, workspace,
      workspace_bytes);
}

lockstep_status lockstep_jacobian_ports_f32(const lockstep_plan* plan, size_t samples, const lockstep_input_f32* in,
                                            size_t in_ports, const lockstep_output_f32* out, size_t out_ports,
                                            float* jacobian, ptrdiff_t jacobian_sample_stride,
                                            ptrdiff_t jacobian_output_stride, ptrdiff_t jacobian_input_stride,
                                            void* workspace, size_t workspace_bytes) {
  return differentiate<float>(
      plan, in, in_ports, out, out_ports,
      {jacobian, samples, 0, 0, jacobian_sample_stride, jacobian_output_stride, jacobian_input_stride}, workspace,
      workspace_bytes);
}

lockstep_status lockstep_jacobian_ports_f64(const lockstep_plan* plan, size_t samples, const lockstep_input_f64* in,
                                            size_t in_ports, const lockstep_output_f64* out, size_t out_ports,
                                            double* jacobian, ptrdiff_t jacobian_sample_stride,
                                            ptrdiff_t jacobian_output_stride, ptrdiff_t jacobian_input_stride,
                                            void* workspace, size_t workspace_bytes) {
  return differentiate<double>(
      plan, in, in_ports, out, out_ports,
      {jacobian, samples, 0, 0, jacobian_sample_stride, jacobian_output_stride, jacobian_input_stride}, workspace,
      workspace_bytes);
}

}  // extern "C"
