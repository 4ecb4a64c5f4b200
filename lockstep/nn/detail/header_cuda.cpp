// The evaluating functions of a CUDA header: by one thread alone, and by the threads of a warp, a block or any group of
// them together. Generic in the scalar type: float or double.
#include "lockstep/nn/detail/header_text.h"

namespace lockstep::nn::detail {
namespace {

// A thread keeps a block of sums in registers; a group shares out blocks and samples, or single outputs where there are
// too few of those.
constexpr std::string_view kCudaLayer = R"(
// {INPUTS} -> {OUTPUTS}{WHAT}
template <class T>
{CALL} void $layer{N}(const $weight* w, const T* x, T* y) {
  const $block<{BLOCK}>* row = reinterpret_cast<const $block<{BLOCK}>*>(w);
  for (int first = 0; first < {PADDED}; first += {BLOCK}) {
    T sum[{BLOCK}];
    {START}(*row++, sum);
    for (int k = 0; k < {INPUTS}; ++k) $add(*row++, x[k], sum);
    @UNROLL
    for (int j = 0; j < {BLOCK}; ++j) y[first + j] = {APPLY_SUM_J};
  }
}
@ANY_GROUP
template <class Group, class T>
{CALL} void $group_layer{N}(const Group& group, const $weight* w, int samples, const T* x, T* y) {
  const int rank = (int)group.thread_rank(), size = (int)group.size();
  if (samples * ({PADDED} / {BLOCK}) >= size) {
    for (int item = rank; item < samples * ({PADDED} / {BLOCK}); item += size) {
      const int first = item / samples * {BLOCK}, s = item % samples;
      const $block<{BLOCK}>* row = reinterpret_cast<const $block<{BLOCK}>*>(w + first * {INPUTS_AND_BIAS});
      T sum[{BLOCK}];
      {START}(*row++, sum);
      for (int k = 0; k < {INPUTS}; ++k) $add(*row++, x[k * samples + s], sum);
      @UNROLL
      for (int j = 0; j < {BLOCK}; ++j) y[(first + j) * samples + s] = {APPLY_SUM_J};
    }
  } else {
    for (int item = rank; item < samples * {OUTPUTS}; item += size) {
      const int j = item % {OUTPUTS}, s = item / {OUTPUTS};
      const $weight* column = w + j / {BLOCK} * {BLOCK} * {INPUTS_AND_BIAS} + j % {BLOCK};
      T sum = {BIAS};
      for (int k = 0; k < {INPUTS}; ++k) sum = $fma(T(column[(k + 1) * {BLOCK}]), x[k * samples + s], sum);
      y[j * samples + s] = {APPLY_SUM};
    }
  }
  group.sync();
}
)";

constexpr std::string_view kShared = R"(
template <int n>
struct alignas(16) $block {
  $weight of[n];
};
template <int n, class T>
@CALL void $start(const $block<n> bias, T (&sum)[n]) {
  @UNROLL
  for (int j = 0; j < n; ++j) sum[j] = T(bias.of[j]);
}
template <int n, class T>
@CALL void $start_at_zero(const $block<n>, T (&sum)[n]) {
  @UNROLL
  for (int j = 0; j < n; ++j) sum[j] = 0;
}
template <int n, class T>
@CALL void $add(const $block<n> w, T x, T (&sum)[n]) {
  @UNROLL
  for (int j = 0; j < n; ++j) sum[j] = $fma(T(w.of[j]), x, sum[j]);
}

// One thread as a group.
struct $alone {
  @MEMBER int thread_rank() const { return 0; }
  @MEMBER int size() const { return 1; }
  @MEMBER void sync() const {}
};
)";

constexpr std::string_view kCudaEvaluate = R"(
// By one thread, out[i * out_stride] = net(in[i * in_stride]): {OUT_COUNT} numbers of {IN_COUNT}; they may be the same
// array. T is {TYPES}.
template <class T>
@CALL void $evaluate({WEIGHT_ARGUMENT}const T* in, ptrdiff_t in_stride, T* out, ptrdiff_t out_stride) {
{REQUIRED}  T a[@WIDEST], b[@WIDEST];
  for (int i = 0; i < @INPUTS; ++i) a[i] = $scale_in(i, in[i * in_stride]);
{LAYERS}  for (int i = 0; i < @OUTPUTS; ++i) out[i * out_stride] = $scale_out(i, {LAST}[i]);
}

// Numbers of T that a group needs as scratch for so many samples at once.
@CALL constexpr int $scratch(int samples) { return 2 * @WIDEST * samples; }

// By a group of threads together, `samples` samples at once: every thread of it calls with the same arguments. Feature i
// of sample s lies at in[s * in_sample_stride + i * in_feature_stride], and out likewise. `scratch` is memory that the
// group shares, $scratch(samples) numbers, free again when the function returns. A Group has thread_rank(), size() and
// sync(), as cooperative_groups::thread_block and thread_block_tile have. Efficient from about 32 samples a block.
@ANY_GROUP
template <class Group, class T>
@CALL void $evaluate_group(const Group& group, {WEIGHT_ARGUMENT}int samples,
    const T* in, ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride,
    T* out, ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride, T* scratch) {
{REQUIRED}  const int rank = (int)group.thread_rank(), size = (int)group.size();
  T* a = scratch;
  T* b = scratch + @WIDEST * samples;
  for (int item = rank; item < samples * @INPUTS; item += size) {
    const int i = item / samples, s = item % samples;
    a[item] = $scale_in(i, in[s * in_sample_stride + i * in_feature_stride]);
  }
  group.sync();
{GROUP_LAYERS}  for (int item = rank; item < samples * @OUTPUTS; item += size) {
    const int i = item / samples, s = item % samples;
    out[s * out_sample_stride + i * out_feature_stride] = $scale_out(i, {LAST}[item]);
  }
  group.sync();
}
)";

constexpr std::string_view kGroups = R"(
// The threads of a warp, and of a block, as groups; on the host, one thread.
struct $warp {
#ifdef __CUDA_ARCH__
  __device__ int thread_rank() const { return ((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) & 31; }
  __device__ int size() const { return 32; }
  __device__ void sync() const { __syncwarp(); }
#else
  @MEMBER int thread_rank() const { return 0; }
  @MEMBER int size() const { return 1; }
  @MEMBER void sync() const {}
#endif
};
struct $thread_block {
#ifdef __CUDA_ARCH__
  __device__ int thread_rank() const { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
  __device__ int size() const { return blockDim.x * blockDim.y * blockDim.z; }
  __device__ void sync() const { __syncthreads(); }
#else
  @MEMBER int thread_rank() const { return 0; }
  @MEMBER int size() const { return 1; }
  @MEMBER void sync() const {}
#endif
};
)";

}  // namespace

std::string_view cuda_blocks_text() { return kShared; }
std::string_view cuda_groups_text() { return kGroups; }

std::string cuda_layer_text(const HeaderPlan& plan, std::size_t i) {
  const HeaderLayer& layer = plan.layers[i];
  const auto apply = [&](const std::string& value) {
    return layer.function.empty() ? value : "$" + layer.function + "(" + value + ")";
  };
  return fill(kCudaLayer, {{"N", std::to_string(i)},
                           {"CALL", cuda_call(layer.calls)},
                           {"INPUTS", std::to_string(layer.inputs)},
                           {"INPUTS_AND_BIAS", std::to_string(layer.inputs + 1)},
                           {"OUTPUTS", std::to_string(layer.outputs)},
                           {"PADDED", std::to_string(layer.padded())},
                           {"BLOCK", std::to_string(layer.block)},
                           {"WHAT", layer.function.empty() ? "" : ", " + layer.function},
                           {"START", layer.starts_at_zero ? "$start_at_zero" : "$start"},
                           {"BIAS", layer.starts_at_zero ? "0" : "T(column[0])"},
                           {"APPLY_SUM", apply("sum")},
                           {"APPLY_SUM_J", apply("sum[j]")}});
}

std::string cuda_evaluation_text(const HeaderPlan& plan) {
  const bool argument = plan.options.weights_in == WeightsIn::argument;
  std::string text(kShared), layers, group_layers;
  std::string from = "a", to = "b";
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    text += cuda_layer_text(plan, i);
    const std::string n = std::to_string(i);
    const std::string weights =
        (argument ? "weights + " : "$weights() + ") + std::to_string(plan.layers[i].first_weight);
    layers += "  $layer" + n + "(" + weights + ", " + from + ", " + to + ");\n";
    group_layers += "  $group_layer" + n + "(group, " + weights + ", samples, " + from + ", " + to + ");\n";
    std::swap(from, to);
  }
  return text +
         fill(kCudaEvaluate, {{"IN_COUNT", std::to_string(plan.mlp.inputs())},
                              {"OUT_COUNT", std::to_string(plan.mlp.outputs())},
                              {"WEIGHT_ARGUMENT", argument ? "const $weight* weights, " : ""},
                              {"TYPES", std::string(types_text(plan))},
                              {"REQUIRED", std::string(required_type_text(plan))},
                              {"LAYERS", layers},
                              {"GROUP_LAYERS", group_layers},
                              {"LAST", from}}) +
         std::string(kGroups);
}

}  // namespace lockstep::nn::detail
