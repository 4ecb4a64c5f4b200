// The evaluating functions of a C header: one sample, vectorised by the compiler over outputs, and a batch, over
// samples.
#include "lockstep/nn/detail/header_text.h"

namespace lockstep::nn::detail {
namespace {

constexpr std::string_view kLayer = R"(
/* {INPUTS} -> {OUTPUTS}{WHAT} */
@CALL void $layer{N}~(const $weight *w, const {T} *x, {T} *y) {
  int first = 0, j, k;
{FOUR_BLOCKS}  for (; first < {PADDED}; first += {BLOCK}, w += {BLOCK_WEIGHTS}) {
    {T} sum[{BLOCK}];
    for (j = 0; j < {BLOCK}; ++j) sum[j] = {BIAS_W_J};
    for (k = 0; k < {INPUTS}; ++k) {
      for (j = 0; j < {BLOCK}; ++j) sum[j] = $fma~(({T})w[{BLOCK} * (k + 1) + j], x[k], sum[j]);
    }
    for (j = 0; j < {BLOCK}; ++j) y[first + j] = {APPLY_SUM};
  }
}
@CALL void $layer{N}_tile~(const $weight *w, const {T} *x, {T} *y) {
  int first, j, k, s;
  for (first = 0; first < {PADDED}; first += {BLOCK}, w += {BLOCK_WEIGHTS}) {
    for (j = 0; j < {BLOCK}; j += 4) {
      {T} sum0[@TILE], sum1[@TILE], sum2[@TILE], sum3[@TILE];
      {T} *to = y + (first + j) * @TILE;
      for (s = 0; s < @TILE; ++s) {
        sum0[s] = {BIAS0};
        sum1[s] = {BIAS1};
        sum2[s] = {BIAS2};
        sum3[s] = {BIAS3};
      }
      for (k = 0; k < {INPUTS}; ++k) {
        const $weight *wk = w + {BLOCK} * (k + 1) + j;
        const {T} w0 = ({T})wk[0], w1 = ({T})wk[1], w2 = ({T})wk[2], w3 = ({T})wk[3];
        const {T} *xk = x + k * @TILE;
        for (s = 0; s < @TILE; ++s) {
          sum0[s] = $fma~(w0, xk[s], sum0[s]);
          sum1[s] = $fma~(w1, xk[s], sum1[s]);
          sum2[s] = $fma~(w2, xk[s], sum2[s]);
          sum3[s] = $fma~(w3, xk[s], sum3[s]);
        }
      }
      for (s = 0; s < @TILE; ++s) to[s] = {APPLY0};
      for (s = 0; s < @TILE; ++s) to[@TILE + s] = {APPLY1};
      for (s = 0; s < @TILE; ++s) to[2 * @TILE + s] = {APPLY2};
      for (s = 0; s < @TILE; ++s) to[3 * @TILE + s] = {APPLY3};
    }
  }
}
)";

// Four blocks at a time, as far as they go: sums that do not wait for each other.
constexpr std::string_view kFourBlocks =
    R"(  for (; first + 4 * {BLOCK} <= {PADDED}; first += 4 * {BLOCK}, w += 4 * {BLOCK_WEIGHTS}) {
    const $weight *v = w + {BLOCK_WEIGHTS}, *u = v + {BLOCK_WEIGHTS}, *t = u + {BLOCK_WEIGHTS};
    {T} sum0[{BLOCK}], sum1[{BLOCK}], sum2[{BLOCK}], sum3[{BLOCK}];
    for (j = 0; j < {BLOCK}; ++j) {
      sum0[j] = {BIAS_W_J};
      sum1[j] = {BIAS_V_J};
      sum2[j] = {BIAS_U_J};
      sum3[j] = {BIAS_T_J};
    }
    for (k = 0; k < {INPUTS}; ++k) {
      const int at = {BLOCK} * (k + 1);
      for (j = 0; j < {BLOCK}; ++j) {
        sum0[j] = $fma~(({T})w[at + j], x[k], sum0[j]);
        sum1[j] = $fma~(({T})v[at + j], x[k], sum1[j]);
        sum2[j] = $fma~(({T})u[at + j], x[k], sum2[j]);
        sum3[j] = $fma~(({T})t[at + j], x[k], sum3[j]);
      }
    }
    for (j = 0; j < {BLOCK}; ++j) y[first + j] = {APPLY0};
    for (j = 0; j < {BLOCK}; ++j) y[first + {BLOCK} + j] = {APPLY1};
    for (j = 0; j < {BLOCK}; ++j) y[first + 2 * {BLOCK} + j] = {APPLY2};
    for (j = 0; j < {BLOCK}; ++j) y[first + 3 * {BLOCK} + j] = {APPLY3};
  }
)";

constexpr std::string_view kEvaluate = R"(
/* out[{OUT_COUNT}] = net(in[{IN_COUNT}]); they may be the same array. */
@CALL void $evaluate~({WEIGHT_ARGUMENT}const {T} *in, {T} *out) {
  {T} a[@WIDEST], b[@WIDEST];
  int i;
  for (i = 0; i < @INPUTS; ++i) a[i] = $scale_in~(i, in[i]);
{LAYERS}  for (i = 0; i < @OUTPUTS; ++i) out[i] = $scale_out~(i, {LAST}[i]);
}
/* The same for `samples` samples: feature i of sample s lies at in[s * in_sample_stride + i * in_feature_stride], and
 * out likewise; strides count numbers. out may be in itself (same strides) or share nothing with it. */
@BATCH void $evaluate_batch~({WEIGHT_ARGUMENT}size_t samples,
    const {T} *in, ptrdiff_t in_sample_stride, ptrdiff_t in_feature_stride,
    {T} *out, ptrdiff_t out_sample_stride, ptrdiff_t out_feature_stride) {
  {T} a[@WIDEST * @TILE], b[@WIDEST * @TILE];
  int i, s;
  for (; samples >= @TILE; samples -= @TILE) {
    for (i = 0; i < @INPUTS; ++i) {
      for (s = 0; s < @TILE; ++s) {
        a[i * @TILE + s] = $scale_in~(i, in[s * in_sample_stride + i * in_feature_stride]);
      }
    }
{LAYERS_OF_TILES}    for (i = 0; i < @OUTPUTS; ++i) {
      for (s = 0; s < @TILE; ++s) {
        out[s * out_sample_stride + i * out_feature_stride] = $scale_out~(i, {LAST}[i * @TILE + s]);
      }
    }
    in += @TILE * in_sample_stride;
    out += @TILE * out_sample_stride;
  }
  for (; samples > 0; --samples) {
    for (i = 0; i < @INPUTS; ++i) a[i] = in[i * in_feature_stride];
    $evaluate~({WEIGHT_PASS}a, a);
    for (i = 0; i < @OUTPUTS; ++i) out[i * out_feature_stride] = a[i];
    in += in_sample_stride;
    out += out_sample_stride;
  }
}
)";

template <class T>
std::string evaluation_text(const HeaderPlan& plan) {
  const std::string type = sizeof(T) == 4 ? "float" : "double";
  const bool argument = plan.options.weights_in == WeightsIn::argument;
  std::string text, layers, tiles;
  std::string from = "a", to = "b";
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    text += c_layer_text<T>(plan, i);
    const std::string arguments = "~(" + std::string(argument ? "" : "$") + "weights + " +
                                  std::to_string(plan.layers[i].first_weight) + ", " + from + ", " + to + ");\n";
    layers += "  $layer" + std::to_string(i) + arguments;
    tiles += "    $layer" + std::to_string(i) + "_tile" + arguments;
    std::swap(from, to);
  }
  return text + fill(kEvaluate, {{"T", type},
                                 {"IN_COUNT", std::to_string(plan.mlp.inputs())},
                                 {"OUT_COUNT", std::to_string(plan.mlp.outputs())},
                                 {"WEIGHT_ARGUMENT", argument ? "const $weight *weights, " : ""},
                                 {"WEIGHT_PASS", argument ? "weights, " : ""},
                                 {"LAYERS", layers},
                                 {"LAYERS_OF_TILES", tiles},
                                 {"LAST", from}});
}

}  // namespace

template <class T>
std::string c_layer_text(const HeaderPlan& plan, std::size_t i) {
  const HeaderLayer& layer = plan.layers[i];
  const std::string type = sizeof(T) == 4 ? "float" : "double";
  const auto apply = [&](const std::string& value) {
    return layer.function.empty() ? value : "$" + layer.function + "~(" + value + ")";
  };
  const auto bias = [&](const std::string& weight) { return layer.starts_at_zero ? "0" : "(" + type + ")" + weight; };
  const TextValues sizes = {
      {"T", type}, {"INPUTS", std::to_string(layer.inputs)},
      {"OUTPUTS", std::to_string(layer.outputs)}, {"PADDED", std::to_string(layer.padded())},
      {"BLOCK", std::to_string(layer.block)},     {"BLOCK_WEIGHTS", std::to_string(layer.block * (layer.inputs + 1))}};
  const auto with = [&sizes](TextValues more) {
    more.insert(sizes.begin(), sizes.end());
    return more;
  };
  const std::string four_blocks = fill(kFourBlocks, with({{"BIAS_W_J", bias("w[j]")},
                                                          {"BIAS_V_J", bias("v[j]")},
                                                          {"BIAS_U_J", bias("u[j]")},
                                                          {"BIAS_T_J", bias("t[j]")},
                                                          {"APPLY0", apply("sum0[j]")},
                                                          {"APPLY1", apply("sum1[j]")},
                                                          {"APPLY2", apply("sum2[j]")},
                                                          {"APPLY3", apply("sum3[j]")}}));
  return fill(kLayer, with({{"N", std::to_string(i)},
                            {"FOUR_BLOCKS", layer.padded() >= 4 * layer.block ? four_blocks : ""},
                            {"WHAT", layer.function.empty() ? "" : ", " + layer.function},
                            {"BIAS_W_J", bias("w[j]")},
                            {"BIAS0", bias("w[j]")},
                            {"BIAS1", bias("w[j + 1]")},
                            {"BIAS2", bias("w[j + 2]")},
                            {"BIAS3", bias("w[j + 3]")},
                            {"APPLY_SUM", apply("sum[j]")},
                            {"APPLY0", apply("sum0[s]")},
                            {"APPLY1", apply("sum1[s]")},
                            {"APPLY2", apply("sum2[s]")},
                            {"APPLY3", apply("sum3[s]")}}));
}
template std::string c_layer_text<float>(const HeaderPlan&, std::size_t);
template std::string c_layer_text<double>(const HeaderPlan&, std::size_t);

std::string c_evaluation_text(const HeaderPlan& plan) {
  return (plan.has_float() ? replaced(evaluation_text<float>(plan), '~', "_f32") : std::string()) +
         replaced(evaluation_text<double>(plan), '~', "_f64");
}

}  // namespace lockstep::nn::detail
