// The evaluating functions of exported graphs: a pointer, or a pointer with strides, for each port.
#include <cctype>

#include "lockstep/nn/detail/header_graph.h"

namespace lockstep::nn::detail {
namespace {

std::string number(std::size_t value) { return std::to_string(value); }

// A text for every port, one after another.
template <class F>
std::string for_ports(const std::vector<HeaderPort>& ports, const F& text) {
  std::string all;
  for (const HeaderPort& port : ports) all += text(port);
  return all;
}

// Calls of the steps: `call(step)` is a function's name and its first arguments, `rows(r)` a pointer to a row.
template <class Call, class Rows>
std::string calls(const HeaderPlan& plan, const std::string& indent, const Call& call, const Rows& rows) {
  std::string text;
  for (const HeaderStep& step : plan.graph->steps) {
    text += indent + call(step);
    for (const std::size_t read : step.reads) text += rows(read) + ", ";
    text += rows(step.makes) + ");\n";
  }
  return text;
}

std::string weights_of(const HeaderPlan& plan, const HeaderStep& step) {
  const bool argument = plan.options.weights_in == WeightsIn::argument;
  const char* const all = argument                                        ? "weights"
                          : plan.options.language == HeaderLanguage::cuda ? "$weights()"
                                                                          : "$weights";
  return std::string(all) + " + " + number(plan.layers[step.layer].first_weight) + ", ";
}

std::string functions_of(const HeaderPlan& plan, const HeaderStep& step) {
  return number(plan.layers[step.layer].functions_of);
}

std::string weight_argument(const HeaderPlan& plan, bool cuda) {
  if (plan.options.weights_in != WeightsIn::argument) return {};
  return cuda ? "const $weight* weights, " : "const $weight *weights, ";
}

constexpr std::string_view kC = R"(
/* {WHAT}; an output may be the array of an input. */
@CALL void $evaluate~({WEIGHT_ARGUMENT}{PORTS}) {
  {T} v[@ROWS];
{UNUSED}{LOAD}{CALLS}{STORE}}
{TILE}/* The same for `samples` samples: feature i of sample s of a port lies at port[s * sample_stride + i * feature_stride];
 * strides count numbers. An output may be an input itself (same strides) or share nothing with it. */
@BATCH void $evaluate_batch~({WEIGHT_ARGUMENT}size_t samples{STRIDED_PORTS}) {
  {T} v[@ROWS * @TILE];
{BATCH_UNUSED}  for (; samples >= @TILE; samples -= @TILE) {
{TILE_LOAD}{TILE_CALL}{TILE_STORE}{ADVANCE_TILE}  }
  for (; samples > 0; --samples) {
{ONE_LOAD}{ONE_CALLS}{ONE_STORE}{ADVANCE_ONE}  }
}
)";

// The steps of a tile, as a function that stays one: within the loop over tiles clang takes every constant and every
// index of all steps out of the loop, in registers of 64 bytes, of which it keeps hundreds on the stack.
constexpr std::string_view kCTile = R"(@BATCH void $tile~({WEIGHT_ARGUMENT}{T} *v) {
{TILE_CALLS}}
)";

template <class T>
std::string c_evaluation(const HeaderPlan& plan) {
  const HeaderGraph& graph = *plan.graph;
  const std::string type = sizeof(T) == 4 ? "float" : "double";
  const auto loop = [](const HeaderPort& port) { return "for (i = 0; i < " + number(port.width) + "; ++i) "; };
  const auto row = [](std::size_t r) { return "v + " + number(r); };
  const auto tile_row = [](std::size_t r) { return "v + " + number(r) + " * @TILE"; };
  const auto call = [&](const char* samples, const char* ending) {
    return [&plan, samples, ending](const HeaderStep& step) {
      if (step.layer != HeaderStep::kNoLayer) {
        return "$layer" + functions_of(plan, step) + ending + "~(" + weights_of(plan, step);
      }
      return "$node" + number(step.function_of) + "~(" + samples + ", ";
    };
  };
  const auto all = [&](const auto& in, const auto& out) {
    return for_ports(graph.inputs, in) + for_ports(graph.outputs, out);
  };
  std::string ports = all([&](const HeaderPort& p) { return "const " + type + " *" + p.parameter + ", "; },
                          [&](const HeaderPort& p) { return type + " *" + p.parameter + ", "; });
  ports.resize(ports.size() - 2);
  const auto strided = [&](const std::string& kind) {
    return [kind](const HeaderPort& p) {
      return ",\n    " + kind + p.parameter + ", ptrdiff_t " + p.parameter + "_sample_stride, ptrdiff_t " +
             p.parameter + "_feature_stride";
    };
  };
  const auto advance = [&](const std::string& by) {
    const auto one = [by](const HeaderPort& p) {
      return "    " + p.parameter + " += " + by + p.parameter + "_sample_stride;\n";
    };
    const auto one_read = [one](const HeaderPort& p) { return p.is_needed ? one(p) : std::string(); };
    return for_ports(graph.inputs, one_read) + for_ports(graph.outputs, one);
  };
  const auto element = [](const HeaderPort& p) { return p.parameter + "[i * " + p.parameter + "_feature_stride]"; };
  const auto tile_element = [](const HeaderPort& p) {
    return p.parameter + "[s * " + p.parameter + "_sample_stride + i * " + p.parameter + "_feature_stride]";
  };
  const auto ignored = [](const HeaderPort& p) {
    return p.is_needed ? std::string() : "  (void)" + p.parameter + ";\n";
  };
  const auto ignored_strided = [](const HeaderPort& p) {
    return p.is_needed ? std::string()
                       : "  (void)" + p.parameter + ";\n  (void)" + p.parameter + "_sample_stride;\n  (void)" +
                             p.parameter + "_feature_stride;\n";
  };
  const auto loads = [&](const std::string& indent, const auto& from, const char* scale, const std::string& samples) {
    return for_ports(graph.inputs, [&](const HeaderPort& p) -> std::string {
      if (!p.is_needed) return {};
      const std::string place =
          samples.empty() ? "v[" + number(p.row) + " + i]" : "v[(" + number(p.row) + " + i)" + scale + " + s]";
      return indent + loop(p) + samples + place + " = " + from(p) + ";\n";
    });
  };
  const auto stores = [&](const std::string& indent, const auto& to, const char* scale, const std::string& samples) {
    return for_ports(graph.outputs, [&](const HeaderPort& p) {
      const std::string place =
          samples.empty() ? "v[" + number(p.row) + " + i]" : "v[(" + number(p.row) + " + i)" + scale + " + s]";
      return indent + loop(p) + samples + to(p) + " = " + place + ";\n";
    });
  };
  const auto plain = [](const HeaderPort& p) { return p.parameter + "[i]"; };
  const std::string of_tile = "for (s = 0; s < @TILE; ++s) ";
  const std::string tile_calls = calls(plan, "  ", call("@TILE", "_tile"), tile_row);
  std::string text, tile, call_tile;
  if (!tile_calls.empty()) {
    const std::string weights = plan.layers.empty() ? std::string() : weight_argument(plan, false);
    tile = fill(kCTile, {{"T", type}, {"WEIGHT_ARGUMENT", weights}, {"TILE_CALLS", tile_calls}});
    call_tile = weights.empty() ? "    $tile~(v);\n" : "    $tile~(weights, v);\n";
  }
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    if (plan.layers[i].functions_of == i) text += c_layer_text<T>(plan, i);
  }
  text += fill(kC, {{"T", type},
                    {"TILE", tile},
                    {"WHAT", for_ports(graph.outputs,
                                       [](const HeaderPort& p) { return p.parameter + "[" + number(p.width) + "] "; }) +
                                 "= net(" +
                                 for_ports(graph.inputs,
                                           [&](const HeaderPort& p) {
                                             return (&p == &graph.inputs.front() ? "" : ", ") + p.parameter + "[" +
                                                    number(p.width) + "]";
                                           }) +
                                 ")"},
                    {"WEIGHT_ARGUMENT", weight_argument(plan, false)},
                    {"PORTS", ports},
                    {"STRIDED_PORTS", for_ports(graph.inputs, strided("const " + type + " *")) +
                                          for_ports(graph.outputs, strided(type + " *"))},
                    {"UNUSED", "  int i;\n" + for_ports(graph.inputs, ignored)},
                    {"LOAD", loads("  ", plain, "", "")},
                    {"CALLS", calls(plan, "  ", call("1", ""), row)},
                    {"STORE", stores("  ", plain, "", "")},
                    {"BATCH_UNUSED", "  int i, s;\n" + for_ports(graph.inputs, ignored_strided)},
                    {"TILE_LOAD", loads("    ", tile_element, " * @TILE", of_tile)},
                    {"TILE_CALL", call_tile},
                    {"TILE_STORE", stores("    ", tile_element, " * @TILE", of_tile)},
                    {"ADVANCE_TILE", advance("@TILE * ")},
                    {"ONE_LOAD", loads("    ", element, "", "")},
                    {"ONE_CALLS", calls(plan, "    ", call("1", ""), row)},
                    {"ONE_STORE", stores("    ", element, "", "")},
                    {"ADVANCE_ONE", advance("")}});
  return text;
}

constexpr std::string_view kCuda = R"(
// By one thread: feature i of a port lies at port[i * stride]; {WHAT}. An output may be the
// array of an input. T is {TYPES}.
template <class T>
@CALL void $evaluate({WEIGHT_ARGUMENT}{PORTS}) {
{REQUIRED}  T v[@ROWS];
{LOAD}{CALLS}{STORE}}

// Numbers of T that a group needs as scratch for so many samples at once.
@CALL constexpr int $scratch(int samples) { return @ROWS * samples; }

// By a group of threads together, `samples` samples at once: every thread of it calls with the same arguments. Feature i
// of sample s of a port lies at port[s * sample_stride + i * feature_stride]. `scratch` is memory that the group shares,
// $scratch(samples) numbers, free again when the function returns. A Group has thread_rank(), size() and sync(), as
// cooperative_groups::thread_block and thread_block_tile have. Efficient from about 32 samples a block.
@ANY_GROUP
template <class Group, class T>
@CALL void $evaluate_group(const Group& group, {WEIGHT_ARGUMENT}int samples{STRIDED_PORTS}, T* scratch) {
{REQUIRED}  const int rank = (int)group.thread_rank(), size = (int)group.size();
{GROUP_LOAD}  group.sync();
{GROUP_CALLS}{GROUP_STORE}  group.sync();
}
)";

}  // namespace

std::string c_graph_text(const HeaderPlan& plan) {
  std::string single;
  if (plan.has_float()) single = replaced(node_functions_text<float>(plan) + c_evaluation<float>(plan), '~', "_f32");
  return single + replaced(node_functions_text<double>(plan) + c_evaluation<double>(plan), '~', "_f64");
}

std::string cuda_graph_text(const HeaderPlan& plan) {
  const HeaderGraph& graph = *plan.graph;
  const auto row = [](std::size_t r) { return "v + " + number(r); };
  const auto group_row = [](std::size_t r) { return "scratch + " + number(r) + " * samples"; };
  const auto call = [&](const HeaderStep& step) {
    if (step.layer != HeaderStep::kNoLayer) return "$layer" + functions_of(plan, step) + "(" + weights_of(plan, step);
    return "$node" + number(step.function_of) + "($alone(), 1, ";
  };
  const auto group_call = [&](const HeaderStep& step) {
    if (step.layer != HeaderStep::kNoLayer) {
      return "$group_layer" + functions_of(plan, step) + "(group, " + weights_of(plan, step) + "samples, ";
    }
    return "$node" + number(step.function_of) + "(group, samples, ";
  };
  std::string ports =
      for_ports(
          graph.inputs,
          [](const HeaderPort& p) { return "const T* " + p.parameter + ", ptrdiff_t " + p.parameter + "_stride, "; }) +
      for_ports(graph.outputs,
                [](const HeaderPort& p) { return "T* " + p.parameter + ", ptrdiff_t " + p.parameter + "_stride, "; });
  ports.resize(ports.size() - 2);
  const auto strided = [](const std::string& kind) {
    return [kind](const HeaderPort& p) {
      return ",\n    " + kind + p.parameter + ", ptrdiff_t " + p.parameter + "_sample_stride, ptrdiff_t " +
             p.parameter + "_feature_stride";
    };
  };
  const auto element = [](const HeaderPort& p) { return p.parameter + "[i * " + p.parameter + "_stride]"; };
  const auto group_element = [](const HeaderPort& p) {
    return p.parameter + "[s * " + p.parameter + "_sample_stride + i * " + p.parameter + "_feature_stride]";
  };
  const auto loop = [](const HeaderPort& p) { return "  for (int i = 0; i < " + number(p.width) + "; ++i) "; };
  const auto group_loop = [](const HeaderPort& p) {
    return "  for (int item = rank; item < samples * " + number(p.width) +
           "; item += size) {\n    const int i = item / samples, s = item % samples;\n    ";
  };
  const auto place = [](const HeaderPort& p) { return "v[" + number(p.row) + " + i]"; };
  const auto group_place = [](const HeaderPort& p) { return "scratch[" + number(p.row) + " * samples + item]"; };
  std::string text(cuda_blocks_text());
  if (plan.has_float()) text += replaced(node_functions_text<float>(plan), '~', "");
  text += replaced(node_functions_text<double>(plan), '~', "");
  for (std::size_t i = 0; i < plan.layers.size(); ++i) {
    if (plan.layers[i].functions_of == i) text += cuda_layer_text(plan, i);
  }
  text += fill(
      kCuda,
      {{"WEIGHT_ARGUMENT", weight_argument(plan, true)},
       {"TYPES", std::string(types_text(plan))},
       {"REQUIRED", std::string(required_type_text(plan))},
       {"WHAT",
        for_ports(graph.outputs, [](const HeaderPort& p) { return p.parameter + "[" + number(p.width) + "] "; }) +
            "of" +
            for_ports(graph.inputs,
                      [&](const HeaderPort& p) { return " " + p.parameter + "[" + number(p.width) + "]"; })},
       {"PORTS", ports},
       {"STRIDED_PORTS", for_ports(graph.inputs, strided("const T* ")) + for_ports(graph.outputs, strided("T* "))},
       {"LOAD", for_ports(graph.inputs,
                          [&](const HeaderPort& p) -> std::string {
                            if (!p.is_needed) {
                              return "  (void)" + p.parameter + ";\n  (void)" + p.parameter + "_stride;\n";
                            }
                            return loop(p) + place(p) + " = " + element(p) + ";\n";
                          })},
       {"CALLS", calls(plan, "  ", call, row)},
       {"STORE",
        for_ports(graph.outputs, [&](const HeaderPort& p) { return loop(p) + element(p) + " = " + place(p) + ";\n"; })},
       {"GROUP_LOAD", for_ports(graph.inputs,
                                [&](const HeaderPort& p) -> std::string {
                                  if (!p.is_needed) {
                                    return "  (void)" + p.parameter + ";\n  (void)" + p.parameter +
                                           "_sample_stride;\n  (void)" + p.parameter + "_feature_stride;\n";
                                  }
                                  return group_loop(p) + group_place(p) + " = " + group_element(p) + ";\n  }\n";
                                })},
       {"GROUP_CALLS", calls(plan, "  ", group_call, group_row)},
       {"GROUP_STORE", for_ports(graph.outputs, [&](const HeaderPort& p) {
          return group_loop(p) + group_element(p) + " = " + group_place(p) + ";\n  }\n";
        })}});
  return text + std::string(cuda_groups_text());
}

}  // namespace lockstep::nn::detail
