#include "lockstep/ode/cuda/kernel_source.h"

#include "lockstep/ode/cuda/block_launch.h"
#include "lockstep/ode/cuda/gemm/round_launch.h"
#include "lockstep/ode/methods.h"

namespace lockstep::ode::cuda {
namespace {

// Stages and components that still fit into registers; more come from a table, in loops.
constexpr std::size_t kMostInRegisters = 120;
// A text is copied into every stage, where state and stages can stay in registers, unless all copies together are
// longer than this: then it is one function that is called. A call of an elementary function counts as so many letters;
// with many copies of those NVRTC takes minutes.
constexpr std::size_t kMostCopied = 20000, kElementaryFunction = 1000;
// Copies of an event, and of a term that a function of the kernel's own calls.
constexpr std::size_t kEventCopies = 3, kTermCopies = 2;
// The same of a reset: of its function where most steps look, and in one that is called.
constexpr std::size_t kResetCopies = 3, kNewStateCopies = 1;

// "VanDerPol" of "van_der_pol".
std::string type_name(std::string_view name) {
  std::string result;
  bool first = true;
  for (const char c : name) {
    if (c != '_') result += first && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    first = c == '_';
  }
  return result;
}

std::string number_name(Precision precision) { return precision == Precision::f32 ? "float" : "double"; }

// Linearly implicit methods are in no table.
bool is_compiled(const Tableau& tableau, std::size_t components) {
  return tableau.is_linearly_implicit() || static_cast<std::size_t>(tableau.stages) * components <= kMostInRegisters;
}

// Of a derivative in a kernel's code.
std::size_t copies_for(std::string_view method_name, std::size_t components) {
  const Tableau& tableau = method(method_name);
  const int beside_stages = 2;  // the first step
  if (!is_compiled(tableau, components)) return static_cast<std::size_t>(beside_stages + 2);
  const int plain_steps = tableau.error.empty() ? tableau.stages - 1 : 0;  // of Trajectory
  return static_cast<std::size_t>(beside_stages + tableau.stages + plain_steps + tableau.interpolant_stages);
}

bool is_called(const std::string& text, std::size_t copies) {
  std::size_t length = text.size();
  for (std::size_t at = text.find("math::"); at != std::string::npos; at = text.find("math::", at + 1))
    length += kElementaryFunction;
  return length * copies > kMostCopied;
}

// A function in the namespace lockstep_source whose body is the part's, for so many places in the code.
std::string function_text(const SourcePart& part, std::size_t copies, const std::string& signature) {
  return "  static __device__ " + std::string(is_called(*part.text, copies) ? "__noinline__ " : "__forceinline__ ") +
         signature +
         " {\n"
         "    (void)t; (void)u; (void)p;\n"
         "#line 1 \"" +
         part.name + "\"\n" + *part.text +
         "\n"
         "#line 1 \"kernel\"\n"
         "  }\n";
}

// The Jacobian beside a derivative, and where its entries lie. Steps need it once.
std::string jacobian_text(const std::string& name, const JacobianSource& jacobian, const std::string& number) {
  const LinearLayout& layout = jacobian.layout;
  std::string order, shape;
  for (const std::size_t component : layout.order()) order += (order.empty() ? "" : ", ") + std::to_string(component);
  for (const std::size_t value : {layout.size(), layout.below(), layout.reach(), layout.stride(), layout.shift()})
    shape += std::to_string(value) + ", ";
  const std::string places = !layout.is_band() ? ""
                                               : "  struct Places {\n"
                                                 "    static __device__ constexpr int component(int place) {\n"
                                                 "      constexpr int of[] = {" +
                                                     order +
                                                     "};\n"
                                                     "      return of[place];\n"
                                                     "    }\n"
                                                     "  };\n";
  return places + "  using Matrix = ode::cuda::MatrixShape<" + shape +
         (layout.is_band() ? "Places" : "ode::cuda::GivenOrder") + ">;\n" +
         function_text({name + ", Jacobian", &jacobian.text, 0, 0}, 1,
                       "void jacobian(double t, const " + number + "* u, const " + number + "* p, " + number +
                           "* by_state, " + number + "* by_time)");
}

std::string derivative_struct(const SourcePart& part, std::size_t copies, const std::string& name,
                              const std::string& number, const JacobianSource* jacobian = nullptr) {
  return "struct " + name + " {\n" +
         function_text(
             part, copies,
             "void evaluate(double t, const " + number + "* u, const " + number + "* p, " + number + "* du)") +
         (jacobian == nullptr ? "" : jacobian_text(part.name, *jacobian, number)) + "};\n";
}

std::string event_struct(const SourcePart& part, const std::string& number) {
  return "struct Event {\n" +
         function_text(part, kEventCopies,
                       number + " value(double t, const " + number + "* u, const " + number + "* p)") +
         "};\n";
}

std::string in_namespace(const std::string& text) {
  return "namespace lockstep_source {\nusing namespace lockstep;\n" + text + "}\n";
}

constexpr const char* kDirections[] = {"either", "rising", "falling"};  // of EventDirection

std::string reset_struct(std::size_t which, const ResetSource& reset, const std::string& number) {
  const std::string index = std::to_string(which), inputs = "(double t, const " + number + "* u, const " + number;
  const auto body = [&](const std::string& name, const std::string& text, std::size_t copies,
                        const std::string& signature) {
    return function_text({"reset " + index + name, &text, 0, 0}, copies, signature);
  };
  const std::string state =
      reset.state_returns
          ? body(", new state", reset.state, kNewStateCopies, number + " state" + inputs + "* p)") +
                "  static __device__ __forceinline__ void state" + inputs + "* p, " + number +
                "* next) {\n    next[0] = state(t, u, p);\n  }\n"
          : body(", new state", reset.state, kNewStateCopies, "void state" + inputs + "* p, " + number + "* du)");
  return "struct Reset" + index + " {\n  static constexpr ode::EventDirection kDirection = ode::EventDirection::" +
         kDirections[static_cast<std::size_t>(reset.direction)] + ";\n" +
         body("", reset.function, kResetCopies, number + " value" + inputs + "* p)") + state + "};\n";
}

// What comes as text beside a right-hand side: an event, resets.
struct Watched {
  const SourcePart* event = nullptr;  // null: none
  std::span<const ResetSource> resets = {};

  // Headers that its text takes, and the text, which belongs before the derivative.
  std::string headers() const { return resets.empty() ? "" : "#include \"lockstep/ode/cuda/reset_trajectory.h\"\n"; }
  std::string text(const std::string& number) const {
    std::string all = event == nullptr ? "" : event_struct(*event, number);
    for (std::size_t i = 0; i < resets.size(); ++i) all += reset_struct(i, resets[i], number);
    return all;
  }
  std::string name() const {
    const std::string count = std::to_string(resets.size());
    return (event == nullptr ? "" : ", event " + event->name) +
           (resets.empty() ? "" : ", " + count + (resets.size() == 1 ? " reset" : " resets"));
  }
  // The type of that derivative with it.
  std::string round(std::string derivative, const std::string& number) const {
    if (event != nullptr) derivative = "ode::cuda::WithEvent<" + derivative + ", Event, " + number + ">";
    if (resets.empty()) return derivative;
    std::string list;
    for (std::size_t i = 0; i < resets.size(); ++i) list += (i == 0 ? "Reset" : ", Reset") + std::to_string(i);
    return "ode::cuda::WithResets<" + derivative + ", ode::cuda::ResetList<" + list + ">>";
  }
};
Watched watched(const SumForm& form) { return {form.event, form.resets}; }

std::string source_derivative(std::size_t components, std::size_t parameters, const std::string& number) {
  return "ode::cuda::SourceDerivative<Function, " + std::to_string(components) + ", " + std::to_string(parameters) +
         ", " + number + ">";
}

std::string system_derivative(std::string_view system, const std::string& number) {
  return "ode::cuda::SystemDerivative<ode::systems::" + type_name(system) + ", " + number + ">";
}

constexpr const char* kProgramHeader = "#include \"lockstep/ode/cuda/program_derivative.h\"\n";

KernelSource named_source(const std::string& what, std::string_view method_name, Precision precision) {
  KernelSource source;
  source.float64 = precision == Precision::f64;
  source.name = what + ", " + std::string(method_name) + ", " + std::string(to_string(precision));
  return source;
}

// `before`: includes and what the derivative's type needs, in the namespace lockstep_source.
KernelSource make_source(const std::string& what, const std::string& before, const std::string& derivative,
                         std::size_t components, std::string_view method_name, Precision precision) {
  const std::string number = number_name(precision);
  const bool compiled = is_compiled(method(method_name), components);
  const std::string scheme =
      compiled ? "CompiledScheme<ode::" + type_name(method_name) + ">" : "TableScheme<" + number + ">";
  KernelSource source = named_source(what, method_name, precision);
  const std::string threads = std::to_string(source.threads);
  source.text =
      "#include \"lockstep/ode/cuda/device_standard-inl.h\"\n"
      "#include \"lockstep/ode/cuda/advance.cuh\"\n"
      "#include \"lockstep/ode/methods/" +
      std::string(method_name) + ".h\"\n" + before +
      in_namespace("using Body = ode::cuda::KernelBody<" + number + ", ode::cuda::" + scheme + ", " + derivative +
                   ", " + threads + ">;\n") +
      "extern \"C\" __global__ void __launch_bounds__(" + threads + ") " + kSourceKernel +
      "(const __grid_constant__ lockstep::ode::cuda::Launch<" + number +
      "> launch) {\n"
      "  extern __shared__ __align__(128) unsigned char shared[];\n"
      "  lockstep::ode::cuda::advance<lockstep_source::Body>(launch, shared);\n"
      "}\n";
  return source;
}

std::string tile_name(MatrixPrecision matrices, const std::string& number) {
  switch (matrices) {
    case MatrixPrecision::tf32:
      return "TensorTile<lockstep::cuda::Tf32>";
    case MatrixPrecision::bf16:
      return "TensorTile<lockstep::cuda::Bf16>";
    case MatrixPrecision::fp16:
      return "TensorTile<lockstep::cuda::Fp16>";
    case MatrixPrecision::f32:
      break;
  }
  return "FmaTile<" + number + ">";
}

// The same for blocks of threads that evaluate nets together.
KernelSource make_tile_source(const std::string& what, const std::string& before, const std::string& derivative,
                              std::string_view method_name, Precision precision, MatrixPrecision matrices) {
  const std::string number = number_name(precision);
  const bool on_tensor_cores = matrices != MatrixPrecision::f32;
  KernelSource source = named_source(what, method_name, precision);
  if (on_tensor_cores) source.name += ", " + std::string(to_string(matrices));
  source.threads = lockstep::cuda::kBlockThreads;
  source.threads_a_trajectory =
      lockstep::cuda::kBlockThreads / (source.float64 ? kBlockTile<double> : kBlockTile<float>);
  source.text =
      "#include \"lockstep/ode/cuda/device_standard-inl.h\"\n"
      "#include \"lockstep/ode/cuda/" +
      std::string(on_tensor_cores ? "tensor_tile.cuh" : "block_advance.cuh") +
      "\"\n"
      "#include \"lockstep/ode/cuda/block_advance.cuh\"\n" +
      before + in_namespace("using Derivative = " + derivative + ";\n") +
      "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(source.threads) + ", 2) " + kSourceKernel +
      "(const __grid_constant__ lockstep::ode::cuda::BlockLaunch<" + number +
      "> launch) {\n"
      "  extern __shared__ __align__(16) unsigned char shared[];\n"
      "  lockstep::ode::cuda::advance_tile<lockstep::ode::cuda::" +
      tile_name(matrices, number) +
      ", lockstep_source::Derivative, lockstep_source::Terms>(launch, shared, [&] {\n"
      "    return static_cast<std::int64_t>(atomicAdd(launch.counter, 1ull));\n"
      "  });\n"
      "}\n";
  return source;
}

// The terms of a sum that are not nets, as the struct Terms and what it calls.
std::string terms_text(std::span<const FunctionPart> parts, const std::string& number) {
  std::string functions, calls;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string index = std::to_string(i), name = "Function" + index;
    if (const auto* source = std::get_if<SourcePart>(&parts[i].what)) {
      functions += derivative_struct(*source, kTermCopies, name, number);
      calls += "    if (part == " + index + ") " + name + "::evaluate(t, u, p, du);\n";
    } else if (const auto* system = std::get_if<SystemPart>(&parts[i].what)) {
      calls += "    if (part == " + index + ") ode::systems::evaluate_at<ode::systems::" + type_name(system->name) +
               ", ScalarLane<" + number + ">>(static_cast<" + number + ">(t), u, p, du);\n";
    }
  }
  return functions +
         "struct Terms {\n"
         "  static constexpr bool kOwn = true;\n"
         "  static __device__ void evaluate(int part, double t, const " +
         number + "* u, const " + number + "* p, " + number + "* du) {\n" + calls + "  }\n};\n";
}

std::string name_of(const FunctionPart& part) {
  if (const auto* system = std::get_if<SystemPart>(&part.what)) return system->name;
  if (const auto* source = std::get_if<SourcePart>(&part.what)) return "source " + source->name;
  return "net";
}

// "source force + net, event distance"
std::string name_of(const SumForm& form) {
  std::string what;
  for (const FunctionPart& part : form.parts) what += (what.empty() ? "" : " + ") + name_of(part);
  return what + watched(form).name();
}

}  // namespace

KernelSource make_kernel_source(const SourcePart& part, std::string_view method, Precision precision) {
  return make_sum_source({.parts = std::vector<FunctionPart>{{part, part.parameters}},
                          .components = part.components,
                          .parameters = part.parameters},
                         method, precision);
}

KernelSource make_sum_source(const SumForm& form, std::string_view method, Precision precision) {
  const std::string number = number_name(precision), components = std::to_string(form.components);
  const std::string what = name_of(form);
  const std::string event = watched(form).text(number);
  const auto make = [&](const std::string& before, const std::string& derivative) {
    return make_source(what, watched(form).headers() + before, watched(form).round(derivative, number), form.components,
                       method, precision);
  };
  if (form.parts.size() == 1) {
    if (const auto* source = std::get_if<SourcePart>(&form.parts[0].what)) {
      return make(in_namespace(derivative_struct(*source, copies_for(method, form.components), "Function", number,
                                                 form.jacobian) +
                               event),
                  source_derivative(form.components, form.parameters, number));
    }
    if (const auto* system = std::get_if<SystemPart>(&form.parts[0].what))
      return make(kProgramHeader + in_namespace(event), system_derivative(system->name, number));
  }
  const std::string before = kProgramHeader + in_namespace(terms_text(form.parts, number) + event);
  if (form.tiles) {
    const std::string derivative = "ode::cuda::OutsideDerivative<" + components + ", " + number + ">";
    return make_tile_source(what, before, watched(form).round(derivative, number), method, precision, form.matrices);
  }
  return make(before, "ode::cuda::ProgramDerivative<" + components + ", " + std::to_string(form.width) + ", " + number +
                          ", Terms>");
}

KernelSource make_gemm_source(const SumForm& form, Precision precision) {
  const std::string number = number_name(precision);
  const std::string derivative =
      "ode::cuda::ProductDerivative<" + number + ", " + std::to_string(form.components) + ">";
  KernelSource source;
  source.float64 = precision == Precision::f64;
  source.threads = kGemmThreads;
  source.name = name_of(form) + ", " + std::string(to_string(precision));
  source.text =
      "#include \"lockstep/ode/cuda/device_standard-inl.h\"\n"
      "#include \"lockstep/ode/cuda/gemm/round.cuh\"\n" +
      in_namespace(terms_text(form.parts, number) + watched(form).text(number) +
                   "using Column = ode::cuda::ColumnTrajectory<" + number + ", " +
                   watched(form).round(derivative, number) + ", Terms>;\n") +
      "extern \"C\" __global__ void __launch_bounds__(" + std::to_string(source.threads) + ") " + kSourceKernel +
      "(const lockstep::ode::cuda::GemmLaunch<" + number +
      ">* launch, bool counts) {\n"
      "  lockstep::ode::cuda::advance_columns_as<lockstep_source::Column>(*launch, counts);\n"
      "}\n";
  return source;
}

KernelSource make_system_source(std::string_view system, std::size_t components, std::string_view method,
                                Precision precision) {
  return make_source("system " + std::string(system), kProgramHeader, system_derivative(system, number_name(precision)),
                     components, method, precision);
}

KernelSource make_folded_net_source(int n, ActivationKind activation, std::size_t weight_bytes, std::string_view method,
                                    Precision precision, const SourcePart* event, std::span<const ResetSource> resets) {
  const Watched beside{event, resets};
  const std::string size = std::to_string(n), number = number_name(precision);
  const std::string derivative = "ode::cuda::FoldedNetDerivative<" + size + ", static_cast<ActivationKind>(" +
                                 std::to_string(static_cast<int>(activation)) + "), " + number + ">";
  KernelSource source =
      make_source("net " + size + " " + to_string(Activation{activation, 0}) + beside.name(),
                  beside.text(number).empty() ? "" : beside.headers() + in_namespace(beside.text(number)),
                  beside.round(derivative, number), static_cast<std::size_t>(n), method, precision);
  source.shared_bytes = weight_bytes;
  return source;
}

}  // namespace lockstep::ode::cuda
