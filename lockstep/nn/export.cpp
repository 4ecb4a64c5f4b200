#include "lockstep/nn/export.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/nn/detail/c_lane.h"
#include "lockstep/nn/detail/header_graph.h"
#include "lockstep/nn/detail/header_text.h"
#include "lockstep/nn/net_plan.h"

namespace lockstep::nn {
namespace detail {

std::string fill(std::string_view text, const TextValues& values) {
  std::string result;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    const std::size_t close = open == text.npos ? text.npos : text.find('}', open);
    const auto value =
        close == text.npos ? values.end() : values.find(std::string(text.substr(open + 1, close - open - 1)));
    if (value == values.end()) {  // an ordinary brace
      result += text.substr(0, open == text.npos ? open : open + 1);
      text.remove_prefix(open == text.npos ? text.size() : open + 1);
      continue;
    }
    result.append(text.substr(0, open)).append(value->second);
    text.remove_prefix(close + 1);
  }
  return result;
}

std::string replaced(std::string_view text, char mark, std::string_view by) {
  std::string result;
  for (const char c : text) {
    if (c == mark) {
      result += by;
    } else {
      result += c;
    }
  }
  return result;
}

template <class T>
std::string initialiser(const std::vector<double>& numbers) {
  std::string text = "{", line;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const T rounded = static_cast<T>(numbers[i]);
    const char* const infinity = sizeof(T) == 4 ? "HUGE_VALF" : "HUGE_VAL";  // of math.h
    std::string number = std::isfinite(rounded) ? c_literal(rounded) : std::string(rounded < 0 ? "-" : "") + infinity;
    if (i + 1 < numbers.size()) number += ",";
    if (line.size() + number.size() > 110) {
      text += "\n   " + line;
      line.clear();
    }
    line += " " + number;
  }
  return text + (text.size() > 1 ? "\n   " : "") + line + "}";
}
template std::string initialiser<float>(const std::vector<double>&);
template std::string initialiser<double>(const std::vector<double>&);

std::string HeaderPlan::function_name(const Activation& activation) {
  if (activation.kind == ActivationKind::identity) return {};
  for (const auto& [name, known] : functions) {
    if (known == activation) return name;
  }
  functions.emplace_back("activation" + std::to_string(functions.size()), activation);
  return functions.back().first;
}

void HeaderPlan::add_layer(const DenseLayer& from) {
  // A device's thread keeps eight sums in registers; a compiler for a CPU makes whole vectors of sixteen.
  const std::size_t most = options.language == HeaderLanguage::cuda ? 8 : 16;
  HeaderLayer layer{.inputs = from.inputs, .outputs = from.outputs, .block = 4};
  while (layer.block < most && layer.block < from.outputs) layer.block *= 2;
  layer.function = function_name(from.activation);
  const std::size_t number = layers.size();
  layer.weights_of = layer.functions_of = number;
  const bool without_bias =
      std::ranges::all_of(from.bias, [](double bias) { return bias == 0 && !std::signbit(bias); });
  for (std::size_t i = 0; graph && i < number && layer.weights_of == number; ++i) {
    const DenseLayer& earlier = mlp.layers[i];
    if (earlier.inputs != from.inputs || earlier.weights != from.weights) continue;
    if (earlier.bias != from.bias && !without_bias) continue;
    layer.weights_of = layers[i].weights_of;
    layer.starts_at_zero = without_bias;
  }
  if (layer.weights_of == number) {
    layer.first_weight = weight_count;
    weight_count += layer.padded() * (layer.inputs + 1);
  } else {
    layer.first_weight = layers[layer.weights_of].first_weight;
  }
  for (std::size_t i = 0; i < number && layer.functions_of == number; ++i) {
    const HeaderLayer& earlier = layers[i];
    if (earlier.weights_of == layer.weights_of && earlier.starts_at_zero == layer.starts_at_zero &&
        earlier.function == layer.function) {
      layer.functions_of = i;
    }
  }
  layers.push_back(layer);
  mlp.layers.push_back(from);
}

}  // namespace detail

namespace {

using detail::HeaderLayer;
using detail::HeaderPlan;

constexpr std::string_view kOpening = R"(#ifndef @H_
#define @H_
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Numbers are rounded where the text below says so, and nowhere else: */
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__)
#error "-ffast-math changes results, and so does a part of it: compile what includes this header without them"
#endif
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "-ffinite-math-only changes results: compile what includes this header without it"
#endif
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16
#error "this machine keeps more digits than float and double have: compile with -msse2 -mfpmath=sse or the like"
#endif
)";

// Products. A sum of one may be contracted into a fused multiply-add by GCC (unless -std=c99 or -ffp-contract=off) and
// by clang. Both can be told, the former from its version 12 on; but what its vectoriser makes of two products may be
// contracted still, so that it is told for all functions as well.
constexpr std::string_view kHostProducts =
    R"(#if defined(__GNUC__) && !defined(__clang__) && !defined(__EDG__) && !defined(__CUDACC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#define @PRODUCT32(a, b) ((a) * (b))
#define @PRODUCT64(a, b) ((a) * (b))
#elif defined(__GNUC__) && __GNUC__ >= 12 && !defined(__EDG__) && !defined(__CUDACC__)
#define @PRODUCT32(a, b) __builtin_assoc_barrier((a) * (b))
#define @PRODUCT64(a, b) __builtin_assoc_barrier((a) * (b))
#else /* compile with -ffp-contract=off, or what your compiler calls it; @check tells whether it was needed */
#define @PRODUCT32(a, b) ((a) * (b))
#define @PRODUCT64(a, b) ((a) * (b))
#endif
#define @QUOTIENT32(a, b) ((a) / (b))
#define @QUOTIENT64(a, b) ((a) / (b))
#define @ROOT32(x) sqrtf(x)
#define @ROOT64(x) sqrt(x)
)";

constexpr std::size_t kTile = 16;  // samples of a batch that a C header's functions take together

constexpr std::string_view kClosing =
    R"(#if defined(__GNUC__) && !defined(__clang__) && !defined(__EDG__) && !defined(__CUDACC__)
#pragma GCC pop_options
#endif
#endif
)";

// Batches stay functions of their own: inlined into one function, the stacks of two nets would add up.
constexpr std::string_view kCall = R"(#define @CALL static inline
#if defined(__GNUC__) || defined(__clang__)
#define @BATCH static __attribute__((noinline, unused))
#elif defined(_MSC_VER)
#define @BATCH static __declspec(noinline)
#else
#define @BATCH static inline
#endif
)";
constexpr std::string_view kCudaCall = R"(#if defined(__CUDACC__)
#define @CALL static __host__ __device__ __forceinline__
#define @SHARED_CALL static __host__ __device__ __noinline__
#define @MEMBER __host__ __device__
#define @ANY_GROUP _Pragma("nv_exec_check_disable") /* a group of the device's or the host's own */
#else
#define @CALL static inline
#define @SHARED_CALL static inline
#define @MEMBER
#define @ANY_GROUP
#endif
)";
constexpr std::string_view kCudaProducts = R"(#if defined(__CUDA_ARCH__)
#define @PRODUCT32(a, b) __fmul_rn(a, b) /* never contracted, whatever -fmad says */
#define @PRODUCT64(a, b) __dmul_rn(a, b)
#define @QUOTIENT32(a, b) __fdiv_rn(a, b)
#define @QUOTIENT64(a, b) __ddiv_rn(a, b)
#define @ROOT32(x) __fsqrt_rn(x)
#define @ROOT64(x) __dsqrt_rn(x)
#define @UNROLL _Pragma("unroll")
#else
#define @UNROLL
)";

bool is_identifier(const std::string& name) {
  const auto letter = [](unsigned char c) { return c == '_' || (c < 128 && std::isalpha(c)); };
  return !name.empty() && letter(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [&](unsigned char c) { return letter(c) || (c < 128 && std::isdigit(c)); });
}

std::vector<double> filled(const std::vector<double>& numbers, const std::vector<double>& other, double neutral) {
  return numbers.empty() ? std::vector<double>(other.size(), neutral) : numbers;
}

HeaderPlan stack_plan(const Model& model, const HeaderOptions& options) {
  HeaderPlan plan;
  const Mlp mlp = to_mlp(model);
  plan.options = options;
  plan.mlp.input_scaling = {filled(mlp.input_scaling.shift, mlp.input_scaling.scale, 0),
                            filled(mlp.input_scaling.scale, mlp.input_scaling.shift, 1)};
  plan.mlp.output_scaling = {filled(mlp.output_scaling.scale, mlp.output_scaling.shift, 1),
                             filled(mlp.output_scaling.shift, mlp.output_scaling.scale, 0)};
  plan.widest = mlp.inputs();
  for (const DenseLayer& layer : mlp.layers) {
    plan.add_layer(layer);
    plan.widest = std::max(plan.widest, plan.layers.back().padded());
  }
  return plan;
}

// Blocks of outputs, each its biases, then for every input its weights; zeros where the last block has fewer outputs.
std::vector<double> laid_out_weights(const HeaderPlan& plan) {
  std::vector<double> numbers;
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    const HeaderLayer& layer = plan.layers[i];
    const DenseLayer& from = plan.mlp.layers[i];
    if (layer.weights_of != i) continue;
    for (std::size_t first = 0; first < layer.outputs; first += layer.block) {
      for (std::size_t k = 0; k <= layer.inputs; ++k) {
        for (std::size_t j = first; j < first + layer.block; ++j) {
          numbers.push_back(j >= layer.outputs ? 0 : k == 0 ? from.bias[j] : from.weights[j * layer.inputs + k - 1]);
        }
      }
    }
  }
  return numbers;
}

// One line of a comment: nothing that ends it.
std::string harmless(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 32 || c == '*' || c == '\\' || c == '?') c = ' ';
  }
  return text;
}

std::string introduction(const Model& model, const HeaderPlan& plan, bool single_weights, std::size_t weights) {
  const bool cuda = plan.options.language == HeaderLanguage::cuda;
  std::string net;
  if (plan.graph) {
    net = std::to_string(plan.graph->graph.nodes.size()) + " operations";
  } else {
    net = std::to_string(plan.mlp.inputs());
    for (const DenseLayer& layer : plan.mlp.layers) net += "-" + std::to_string(layer.outputs);
  }
  for (const auto& [name, activation] : plan.functions) net += ", " + to_string(activation);
  std::string text = "/* A trained net, written by `lockstep export`; do not edit.\n";
  const auto line = [&text](const std::string& what, const std::string& value) {
    if (!value.empty()) text += " * " + what + harmless(value) + "\n";
  };
  line("net: ", (model.name.empty() ? "" : model.name + ", ") + net);
  line("digest: ", model.digest());
  line("from: ", model.provenance.producer);
  line("licence: ", model.provenance.licence);
  line("attribution: ", model.provenance.attribution);
  const auto ports = [&](const char* what, const std::vector<Port>& list) {
    std::string names;
    bool named = false;
    for (const Port& port : list) {
      for (std::size_t i = 0; i < port.features.size(); ++i) {
        const Feature& feature = port.features[i];
        named = named || !feature.name.empty();
        names += (names.empty() ? "" : ", ") + (feature.name.empty() ? "-" : feature.name) +
                 (feature.unit.empty() ? "" : " [" + feature.unit + "]");
      }
    }
    if (named) line(what, names);
  };
  ports("inputs: ", model.inputs);
  ports("outputs: ", model.outputs);
  text +=
      " *\n * Only additions, products, divisions, comparisons and fma, each rounded once: the same bits as Lockstep "
      "gives, on\n"
      " * every machine. ";
  text += cuda ? "Compile without -ftz=true and -use_fast_math, which round denormal numbers\n * away: @check in a "
                 "kernel tells.\n"
               : "Compile with -O2 and, where the processor has it, fused multiply-add (-march=native,\n"
                 " * or -mfma): without it fma is a slow function of the C library, with the same result.\n";
  if (!plan.has_float()) text += " *\n * Functions of double alone, as was asked for: there are none of float.\n";
  if (!cuda) {
    // The rows of a tile and of one sample in a call's own variables. What compilers add was measured, of GCC 12 and
    // clang 14 at -O0 to -O3 with registers of 16 to 64 bytes: at most 10.6 and 7.4 kB for spilled registers of a batch
    // in double and in float, 2.1 kB for one sample. A graph's tile is a function of its own for that.
    const std::size_t rows = plan.graph ? plan.graph->rows : 2 * plan.widest;
    const auto kilobytes = [&](std::size_t samples, std::size_t number, std::size_t more) {
      return std::to_string((rows * samples * number + 1023) / 1024 + more);
    };
    const std::string in_float =
        plan.has_float() ? " in double and " + kilobytes(kTile + 1, sizeof(float), 8) + " kB in float" : std::string();
    text += " *\n * A batch takes at most " + kilobytes(kTile + 1, sizeof(double), 12) + " kB of stack" + in_float +
            ", one sample " + kilobytes(1, sizeof(double), 4) + " kB.\n";
  }
  if (plan.options.weights_in == WeightsIn::argument) {
    text += " *\n * Each function's first argument is a pointer to the " + std::to_string(weights) + " numbers (" +
            std::string(single_weights ? "float" : "double") + ") of the weights' file" +
            (cuda ? ", aligned to 16 bytes" : "") + ".\n";
  }
  return text + " */\n";
}

// All outputs of one sample of all inputs.
template <class T>
std::vector<double> evaluated(const Model& model, const std::vector<double>& in) {
  const auto plan = NetPlan<T>::compile(model);
  const std::vector<T> x(in.begin(), in.end());
  std::vector<T> y;
  for (const auto& port : plan.outputs()) y.resize(y.size() + port.width);
  std::vector<MatrixView<const T>> from;
  std::vector<MatrixView<T>> to;
  std::size_t first = 0;
  for (const auto& port : plan.inputs()) {
    from.push_back(MatrixView<const T>::row_major(x.data() + first, 1, port.width));
    first += port.width;
  }
  first = 0;
  for (const auto& port : plan.outputs()) {
    to.push_back(MatrixView<T>::row_major(y.data() + first, 1, port.width));
    first += port.width;
  }
  plan.evaluate(std::span<const MatrixView<const T>>(from), std::span<const MatrixView<T>>(to));
  std::vector<double> out(y.begin(), y.end());
  for (double& value : out) value = std::isfinite(value) ? value : 0;
  return out;
}

// Inputs spread over two standard deviations, or over the training range, as float has them.
std::vector<double> sample_of(const Model& model, const Mlp* stack) {
  std::vector<double> x;
  for (const Port& port : model.inputs) {
    for (const Feature& feature : port.features) {
      const std::size_t i = x.size();
      const double u = static_cast<double>((i * 37 + 11) % 64) / 16 - 2;
      double value = u;
      if (stack && !stack->input_scaling.scale.empty()) {
        value = stack->input_scaling.shift[i] + stack->input_scaling.scale[i] * u;
      } else if (!stack && std::isfinite(feature.minimum) && std::isfinite(feature.maximum)) {
        value = feature.minimum + (feature.maximum - feature.minimum) * (u + 2) / 4;
      }
      x.push_back(static_cast<float>(value));
    }
  }
  return x;
}

// Elementary operations and activations of each precision: in C their names differ, in C++ their arguments do.
std::string function_texts(const HeaderPlan& plan) {
  const bool cuda = plan.options.language == HeaderLanguage::cuda;
  const char* const single = cuda ? "" : "_f32";
  const char* const twice = cuda ? "" : "_f64";
  bool has_sine = plan.graph && plan.graph->has_angles;
  for (const auto& [name, activation] : plan.functions) has_sine = has_sine || activation.kind == ActivationKind::sin;
  const auto functions = [&]<class T>(T, const char* ending) {
    std::string text = detail::activations_text<T>(plan);
    if (!plan.graph) text += detail::scalings_text<T>(plan);
    return detail::replaced(text, '~', ending);
  };
  return (plan.has_float() ? detail::replaced(detail::functions_text<float>(plan), '~', single) : "") +
         detail::replaced(detail::functions_text<double>(plan), '~', twice) +
         (has_sine ? detail::reduce_angle_text(plan) : "") + (plan.has_float() ? functions(float(), single) : "") +
         functions(double(), twice);
}

std::string weights_text(const HeaderPlan& plan, const std::vector<double>& weights, bool single) {
  const std::string numbers = single ? detail::initialiser<float>(weights) : detail::initialiser<double>(weights);
  if (plan.options.language == HeaderLanguage::c) {
    return "\nstatic const $weight $weights[" + std::to_string(weights.size()) + "] = " + numbers + ";\n";
  }
  // Inside a function, where they are the device's on the device and the host's on the host.
  return "\n@CALL const $weight* $weights() {\n  alignas(16) static const $weight numbers[" +
         std::to_string(weights.size()) + "] = " + numbers + ";\n  return numbers;\n}\n";
}

std::vector<std::byte> bytes_of(const std::vector<double>& numbers, bool single) {
  std::vector<std::byte> bytes(numbers.size() * (single ? sizeof(float) : sizeof(double)));
  const std::vector<float> singles(numbers.begin(), numbers.end());
  std::memcpy(bytes.data(), single ? static_cast<const void*>(singles.data()) : numbers.data(), bytes.size());
  return bytes;
}

}  // namespace

void HeaderOptions::validate() const {
  if (is_identifier(name)) return;
  throw Error(ErrorKind::invalid_argument,
              {"name", '"' + name + '"', "a name as C allows it: letters, digits and _, no digit first", ""});
}

ExportedHeader export_header(const Model& model, const HeaderOptions& options) {
  const StandardArithmetic arithmetic;
  options.validate();
  model.validate();
  const bool stack = is_stack(model);
  const HeaderPlan plan = stack ? stack_plan(model, options) : detail::graph_header_plan(model, options);
  const bool cuda = options.language == HeaderLanguage::cuda;
  const bool argument = options.weights_in == WeightsIn::argument;
  const std::vector<double> weights = laid_out_weights(plan);
  ExportedHeader header;
  header.weight_count = weights.size();
  header.single_weights = std::all_of(weights.begin(), weights.end(),
                                      [](double w) { return static_cast<double>(static_cast<float>(w)) == w; });
  const std::vector<double> in = sample_of(model, stack ? &plan.mlp : nullptr);
  const std::vector<double> out64 = evaluated<double>(model, in);
  std::vector<double> out32;
  if (plan.has_float()) out32 = evaluated<float>(model, in);  // also refuses numbers that do not fit in float

  std::string text(kOpening);
  text += cuda ? kCudaCall : kCall;
  text += cuda ? kCudaProducts : "";
  text += kHostProducts;
  text += cuda ? "#endif\n" : "";
  const auto size = [&text](const char* what, std::size_t value) {
    text += std::string("#define @") + what + " " + std::to_string(value) + "\n";
  };
  text += "\n";
  size("INPUTS", in.size());
  size("OUTPUTS", out64.size());
  if (plan.graph) {
    size("ROWS", plan.graph->rows);
  } else {
    size("WIDEST", plan.widest);
  }
  if (!cuda) size("TILE", kTile);
  if (argument) size("WEIGHTS", weights.size());
  const std::string type = header.single_weights ? "float" : "double";
  text += "typedef " + type + " $weight;\n";
  text += function_texts(plan);
  if (argument) {
    header.weights = bytes_of(weights, header.single_weights);
  } else if (!weights.empty()) {  // no array of nothing: the standards of C and C++ have none
    text += weights_text(plan, weights, header.single_weights);
  }
  if (plan.graph) {
    text += cuda ? detail::cuda_graph_text(plan) : detail::c_graph_text(plan);
  } else {
    text += cuda ? detail::cuda_evaluation_text(plan) : detail::c_evaluation_text(plan);
  }
  text += detail::check_text(plan, in, out32, out64);
  text += kClosing;
  std::string capitals = options.name;
  for (char& c : capitals) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  text = detail::replaced(detail::replaced(text, '$', options.name + "_"), '@', capitals + "_");
  header.text = introduction(model, plan, header.single_weights, weights.size()) + text;
  return header;
}

}  // namespace lockstep::nn
