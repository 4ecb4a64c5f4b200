// Exported headers of nets that are no plain stack, compiled by this machine's compilers and run: the library's bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/nn/derivative_model.h"
#include "lockstep/nn/export.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/nn/testing/graph_models.h"
#include "lockstep/nn/testing/stack_use.h"

namespace lockstep::nn {
namespace {

using testing::every_operation;
using ::testing::HasSubstr;
using testing::named;
using testing::random_net;

constexpr std::size_t kSamples = 37;  // two tiles and five

std::vector<Model> nets() {
  std::vector<Model> models = {every_operation(), random_net(5)};
  models[1].inputs[0].name = "a port/1";  // no identifier
  for (Node& node : models[1].nodes) {
    for (std::string& input : node.inputs) input = input == "in0" ? "a port/1" : input;
  }
  for (Port& port : models[1].outputs) port.value = port.value == "in0" ? "a port/1" : port.value;
#ifdef LOCKSTEP_ONNX
  const std::string folder = std::string(LOCKSTEP_TEST_DATA) + "/exported/graph_";
  for (const char* name : {"residual_opset13", "normalised_opset17", "ports_dynamo", "qlknn_7_11"}) {
    models.push_back(load(folder + name + ".onnx"));
  }
#endif
  // Of a plain stack with scaling, few inputs or few outputs, and of a net with branches.
  const Model stack = Model::from_mlp(mlp::random_mlp({3, 20, 20, 5}, {ActivationKind::tanh}, 7));
  const Model narrowing = Model::from_mlp(mlp::random_mlp({6, 9, 9, 3}, {ActivationKind::gelu}, 8));
  for (const Derivative derivative : {Derivative::jvp, Derivative::vjp, Derivative::jacobian}) {
    models.push_back(derivative_model(stack, derivative));
    models.push_back(derivative_model(random_net(6), derivative));
  }
  models.push_back(derivative_model(narrowing, Derivative::jacobian));
  return models;
}

std::size_t features(const std::vector<Port>& ports) {
  std::size_t count = 0;
  for (const Port& port : ports) count += port.features.size();
  return count;
}

// [feature of all ports][sample]; QLKNN's around a point where its fluxes are not 0.
template <class T>
std::vector<T> inputs_of(const Model& model) {
  const std::vector<double> qlknn = {12.0, 5.35, 3.06, 9.57, 5.74, 2.72, 0.75, 1.86, -2.26, 0.83};
  const std::size_t width = features(model.inputs);
  std::mt19937 random(3);
  std::normal_distribution<double> normal(0, 1.5);
  std::vector<T> x(width * kSamples);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double one = normal(random);
    x[i] = static_cast<T>(width == qlknn.size() ? qlknn[i / kSamples] * (1 + 0.05 * one) : one);
  }
  x[0] = 0;
  x[1] = static_cast<T>(1e30);
  return x;
}

template <class T>
std::vector<T> by_the_library(const Model& model, const std::vector<T>& x) {
  std::vector<T> y(features(model.outputs) * kSamples);
  std::vector<MatrixView<const T>> in;
  std::vector<MatrixView<T>> out;
  const T* from = x.data();
  T* to = y.data();
  for (const Port& port : model.inputs) {
    in.push_back(MatrixView<const T>::column_major(from, kSamples, port.features.size()));
    from += port.features.size() * kSamples;
  }
  for (const Port& port : model.outputs) {
    out.push_back(MatrixView<T>::column_major(to, kSamples, port.features.size()));
    to += port.features.size() * kSamples;
  }
  NetPlan<T>::compile(model).evaluate(std::span<const MatrixView<const T>>(in), std::span<const MatrixView<T>>(out));
  return y;
}

template <class T>
std::size_t different(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return a.size() + b.size() + 1;
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    count += (a[i] == a[i] || b[i] == b[i]) && std::memcmp(&a[i], &b[i], sizeof(T)) != 0;
  }
  return count;
}

// "x + 0, STRIDES, x + 4 * PITCH, STRIDES": the ports' arguments, out of one array.
std::string arguments(const Model& model, const std::string& in, const std::string& out, const std::string& pitch,
                      const std::string& strides) {
  std::string text;
  for (const auto& [ports, name] : {std::pair{&model.inputs, in}, std::pair{&model.outputs, out}}) {
    std::size_t first = 0;
    for (const Port& port : *ports) {
      text += (text.empty() ? "" : ", ") + name + " + " + std::to_string(first) + pitch + strides;
      first += port.features.size();
    }
  }
  return text;
}

constexpr const char* kFiles = R"(#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void get(const char *name, void *numbers, size_t bytes) {
  FILE *file = fopen(name, "rb");
  if (!file || fread(numbers, 1, bytes, file) != bytes) exit(9);
  fclose(file);
}
static void put(const char *name, const void *numbers, size_t bytes) {
  FILE *file = fopen(name, "wb");
  if (!file || fwrite(numbers, 1, bytes, file) != bytes) exit(7);
  fclose(file);
}
)";

// Of net N in one precision: the batch, and each sample alone, which must agree with it (else the exit code is 3).
std::string c_run(const Model& model, const std::string& n, const std::string& type, const std::string& suffix,
                  bool argument) {
  const std::string net = "net" + n, w = argument ? "weights, " : "";
  return "{\n  static " + type + " in[NET" + n + "_INPUTS * 37], out[NET" + n + "_OUTPUTS * 37], x[NET" + n +
         "_INPUTS], y[NET" + n + "_OUTPUTS];\n  int s, i;\n  get(\"in" + n + "." + suffix + "\", in, sizeof in);\n  " +
         net + "_evaluate_batch_" + suffix + "(" + w + "37, " + arguments(model, "in", "out", " * 37", ", 1, 37") +
         ");\n  for (s = 0; s < 37; ++s) {\n    for (i = 0; i < NET" + n +
         "_INPUTS; ++i) x[i] = in[i * 37 + s];\n    " + net + "_evaluate_" + suffix + "(" + w +
         arguments(model, "x", "y", "", "") + ");\n    for (i = 0; i < NET" + n + "_OUTPUTS; ++i) {\n      const " +
         type + " a = y[i], b = out[i * 37 + s];\n" +
         "      if ((a == a || b == b) && memcmp(&a, &b, sizeof a)) exit(3);\n    }\n  }\n  put(\"out" + n + "." +
         suffix + "\", out, sizeof out);\n  }\n";
}

std::string c_program(const std::vector<Model>& models, bool argument) {
  std::string text, calls;
  for (std::size_t i = 0; i < models.size(); ++i) text += "#include \"net" + std::to_string(i) + ".h\"\n";
  text += kFiles;
  for (std::size_t i = 0; i < models.size(); ++i) {
    const std::string n = std::to_string(i);
    text += "static void run" + n + "(void) {\n";
    if (argument) {
      text += "  static net" + n + "_weight weights[NET" + n + "_WEIGHTS + 1];\n  get(\"weights" + n +
              "\", weights, sizeof *weights * NET" + n + "_WEIGHTS);\n";
    }
    text += "  if (net" + n + "_check(" + (argument ? "weights" : "") + ")) exit(4);\n  " +
            c_run(models[i], n, "float", "f32", argument) + "  " + c_run(models[i], n, "double", "f64", argument) +
            "}\n";
    calls += "  run" + n + "();\n";
  }
  return text + "int main(void) {\n" + calls + "  return 0;\n}\n";
}

// Every occurrence of `from`.
std::string replaced_all(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

// By one thread, and by a team of three that meet at a barrier, on 37 samples at once. With nvcc also kernels of a
// thread, a warp and a block, which run where there is a card.
constexpr const char* kCudaRun = R"(
#ifdef __CUDACC__
template <class T>
__global__ void thread{N}({W_TAKEN}const T* in, T* out) {
  const T* x = in + threadIdx.x;
  T* y = out + threadIdx.x;
  if (threadIdx.x < 37) net{N}_evaluate({W}{ONE});
}
template <class Group, class T>
__global__ void group{N}({W_TAKEN}const T* x, T* y, T* scratch) {
  net{N}_evaluate_group(Group(), {W}37, {ALL}, scratch);
}
#endif
template <class T>
void run{N}({W_TAKEN}const char* from, const char* to) {
  std::vector<T> in(NET{N}_INPUTS * 37), out(NET{N}_OUTPUTS * 37), team(out.size()), scratch(net{N}_scratch(37));
  get(from, in.data(), in.size() * sizeof(T));
  for (int s = 0; s < 37; ++s) {
    T *x = in.data() + s, *y = out.data() + s;
    net{N}_evaluate({W}{ONE});
  }
  put(to, out.data(), out.size() * sizeof(T));
  T *x = in.data(), *y = team.data();
  std::barrier<> barrier(3);
  std::vector<std::thread> threads;
  for (int r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] { net{N}_evaluate_group(Team{r, &barrier}, {W}37, {ALL}, scratch.data()); });
  }
  for (std::thread& thread : threads) thread.join();
  if (!same(out, team)) exit(3);
#ifdef __CUDACC__
  if (!has_card()) return;
  {W_CARD}
  T* there[3];
  const size_t counts[3] = {in.size(), out.size(), scratch.size()};
  for (int i = 0; i < 3; ++i)
    if (cudaMalloc(&there[i], counts[i] * sizeof(T)) != cudaSuccess) exit(5);
  cudaMemcpy(there[0], in.data(), in.size() * sizeof(T), cudaMemcpyHostToDevice);
  for (int form = 0; form < 3; ++form) {
    if (form == 0) thread{N}<<<1, 64>>>({W}there[0], there[1]);
    if (form == 1) group{N}<net{N}_warp><<<1, 32>>>({W}there[0], there[1], there[2]);
    if (form == 2) group{N}<net{N}_thread_block><<<1, 96>>>({W}there[0], there[1], there[2]);
    if (cudaMemcpy(team.data(), there[1], out.size() * sizeof(T), cudaMemcpyDeviceToHost) != cudaSuccess) exit(5);
    if (!same(out, team)) exit(2);
  }
  for (T* memory : there) cudaFree(memory);
#endif
}
)";

std::string cuda_program(const std::vector<Model>& models, bool argument) {
  std::string text = "#include <barrier>\n#include <thread>\n#include <vector>\n", calls;
  for (std::size_t i = 0; i < models.size(); ++i) text += "#include \"net" + std::to_string(i) + ".h\"\n";
  text += kFiles;
  text += R"(struct Team {
  int rank;
  std::barrier<>* barrier;
  int thread_rank() const { return rank; }
  int size() const { return 3; }
  void sync() const { barrier->arrive_and_wait(); }
};
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if ((a[i] == a[i] || b[i] == b[i]) && memcmp(&a[i], &b[i], sizeof(T))) return false;
  return true;
}
#ifdef __CUDACC__
bool has_card() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}
#endif
)";
  for (std::size_t i = 0; i < models.size(); ++i) {
    const std::string n = std::to_string(i), net = "net" + n, count = "NET" + n + "_WEIGHTS";
    std::string run = kCudaRun;
    for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
             {"{ONE}", arguments(models[i], "x", "y", " * 37", ", 37")},
             {"{ALL}", arguments(models[i], "x", "y", " * 37", ", 1, 37")},
             {"{W_TAKEN}", argument ? "const " + net + "_weight* weights, " : ""},
             {"{W_CARD}", argument ? net + "_weight* copy;\n  if (cudaMalloc(&copy, sizeof *copy * " + count +
                                         ") != cudaSuccess) exit(5);\n  cudaMemcpy(copy, weights, sizeof *copy * " +
                                         count + ", cudaMemcpyHostToDevice);\n  weights = copy;"
                                   : ""},
             {"{W}", argument ? "weights, " : ""},
             {"{N}", n}}) {
      run = replaced_all(std::move(run), from, to);
    }
    text += run;
    const std::string w = argument ? "weights" + n : "";
    if (argument) {
      calls += "  static " + net + "_weight " + w + "[" + count + " + 1];\n  get(\"weights" + n + "\", " + w +
               ", sizeof *" + w + " * " + count + ");\n";
    }
    calls += "  if (" + net + "_check(" + w + ")) exit(4);\n";
    for (const auto& [type, suffix] : {std::pair{"float", ".f32"}, std::pair{"double", ".f64"}}) {
      calls += "  run" + n + "<" + type + ">(" + (argument ? w + ", " : "") + "\"in" + n + suffix + "\", \"out" + n +
               suffix + "\");\n";
    }
  }
  return text + "int main() {\n" + calls + "}\n";
}

class GraphHeader : public ::testing::Test {
 protected:
  GraphHeader() {
    std::string name = (std::filesystem::temp_directory_path() / "lockstep-graph-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~GraphHeader() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const void* data, std::size_t bytes) const {
    std::ofstream(folder_ / name, std::ios::binary)
        .write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  }
  std::string read(const std::string& name) const {
    std::ifstream file(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  template <class T>
  std::vector<T> numbers(const std::string& name) const {
    const std::string bytes = read(name);
    std::vector<T> result(bytes.size() / sizeof(T));
    std::memcpy(result.data(), bytes.data(), result.size() * sizeof(T));
    return result;
  }
  int run(const std::string& command) const {
    return std::system(("cd '" + folder_.string() + "' && " + command + " > messages.txt 2>&1").c_str());
  }

  void expect_same_bits(const std::vector<Model>& models, HeaderOptions options,
                        const std::vector<std::string>& compilers) {
    for (std::size_t i = 0; i < models.size(); ++i) {
      const std::string n = std::to_string(i);
      options.name = "net" + n;
      const ExportedHeader header = export_header(models[i], options);
      write("net" + n + ".h", header.text.data(), header.text.size());
      write("weights" + n, header.weights.data(), header.weights.size());
      const auto singles = inputs_of<float>(models[i]);
      const auto doubles = inputs_of<double>(models[i]);
      write("in" + n + ".f32", singles.data(), singles.size() * sizeof(float));
      write("in" + n + ".f64", doubles.data(), doubles.size() * sizeof(double));
    }
    const bool argument = options.weights_in == WeightsIn::argument;
    const std::string program =
        options.language == HeaderLanguage::cuda ? cuda_program(models, argument) : c_program(models, argument);
    write("program.c", program.data(), program.size());
    for (const std::string& compiler : compilers) {
      ASSERT_EQ(run(compiler + " program.c -o program -lm -lpthread"), 0) << compiler << "\n" << read("messages.txt");
      ASSERT_EQ(read("messages.txt"), "") << compiler;
      ASSERT_EQ(run("./program"), 0) << compiler << ": 3 disagrees with itself, 4 its own check fails";
      for (std::size_t i = 0; i < models.size(); ++i) {
        const std::string n = std::to_string(i);
        EXPECT_EQ(different(numbers<float>("out" + n + ".f32"), by_the_library(models[i], inputs_of<float>(models[i]))),
                  0u)
            << compiler << ", net " << i;
        EXPECT_EQ(
            different(numbers<double>("out" + n + ".f64"), by_the_library(models[i], inputs_of<double>(models[i]))), 0u)
            << compiler << ", net " << i;
      }
    }
  }

  std::filesystem::path folder_;
};

const std::string kStrictC = LOCKSTEP_TEST_CC " -std=c99 -O0 -Wall -Wextra -pedantic";
#ifdef __clang__  // which disregards the text where it is given `fast`
const std::string kContractingCpp =
    LOCKSTEP_TEST_CXX " -x c++ -std=c++11 -O1 -march=native -ffp-contract=on -Wall -Wextra -pedantic";
#else
const std::string kContractingCpp =
    LOCKSTEP_TEST_CXX " -x c++ -std=c++11 -O1 -march=native -ffp-contract=fast -Wall -Wextra -pedantic";
#endif
// As hosts are built: the vectoriser sees every loop.
const std::string kVectorisedC = LOCKSTEP_TEST_CC " -O3 -march=native -Wall -Wextra";

TEST_F(GraphHeader, nets_of_all_operations_and_ports_have_the_bits_of_the_library_in_c_and_cpp) {
  expect_same_bits(nets(), {}, {kStrictC, kContractingCpp});
}

TEST_F(GraphHeader, no_optimisation_of_the_hosts_changes_a_bit) {
#ifndef LOCKSTEP_ONNX
  GTEST_SKIP() << "these nets are ONNX files";
#else
  std::vector<Model> all;
  for (const char* name : {"mixture_dynamo", "physics_dynamo"}) {
    all.push_back(load(std::string(LOCKSTEP_TEST_DATA) + "/exported/graph_" + name + ".onnx"));
  }
  expect_same_bits(all, {}, {kVectorisedC});
#endif
}

TEST_F(GraphHeader, weights_may_be_the_callers) {
  const std::vector<Model> all = nets();
  expect_same_bits({all[1], all.back()}, {.weights_in = WeightsIn::argument}, {kStrictC});
}

TEST_F(GraphHeader, functions_of_a_thread_and_of_groups_have_the_bits_of_the_library) {
  expect_same_bits(nets(), {.language = HeaderLanguage::cuda},
                   {LOCKSTEP_TEST_CXX " -x c++ -std=c++20 -O1 -Wall -Wextra -pedantic"});
}

TEST_F(GraphHeader, weights_may_be_the_callers_in_cuda) {
  expect_same_bits({random_net(5)}, {.language = HeaderLanguage::cuda, .weights_in = WeightsIn::argument},
                   {LOCKSTEP_TEST_CXX " -x c++ -std=c++20 -O1 -Wall -Wextra -pedantic"});
}

#ifdef LOCKSTEP_TEST_NVCC
// The host's functions run here, the kernels where there is a card.
TEST_F(GraphHeader, nvcc_compiles_the_forms_of_a_thread_a_warp_and_a_block) {
  const std::string nvcc = LOCKSTEP_TEST_NVCC " -x cu -std=c++20 -arch=sm_90 -Werror all-warnings";
  expect_same_bits({nets().back()}, {.language = HeaderLanguage::cuda}, {nvcc});
  expect_same_bits({random_net(5)}, {.language = HeaderLanguage::cuda, .weights_in = WeightsIn::argument}, {nvcc});
}
#endif

// Weights of attention as exporters write it without products of matrices: columns over and over, products and sums of
// them, functions between. Its tile has more constants and indices than registers hold.
Model columns_over_and_over() {
  graph::testing::Builder b;
  const std::size_t x = b.input(12);
  std::vector<std::size_t> from, over, last;
  for (std::size_t i = 0; i < 36; ++i) {
    from.push_back(i / 12 * 4 + i % 4);
    over.push_back(i % 12 / 4 + i % 4 * 3);
  }
  for (std::size_t i = 0; i < 12; ++i) last.push_back(i * 7 % 12);
  std::size_t value = x;
  for (std::size_t layer = 0; layer < 3; ++layer) {
    const std::size_t product =
        b.add(Binary{BinaryKind::multiply}, {b.add(Columns{from}, {value}), b.add(Columns{over}, {value})});
    std::size_t sum = 0;
    for (std::size_t part = 0; part < 3; ++part) {
      std::vector<std::size_t> every;
      for (std::size_t i = 0; i < 12; ++i) every.push_back(3 * i + part);
      const std::size_t column = b.add(Columns{every}, {product});
      sum = part == 0 ? column : b.add(Binary{BinaryKind::add}, {sum, column});
    }
    const std::size_t weights = b.add(Softmax{}, {b.add(Unary{UnaryKind::cosine}, {sum})});
    value = b.add(Binary{BinaryKind::multiply}, {weights, b.add(Columns{last}, {value})});
  }
  b.output(value);
  return named(b.graph);
}

TEST_F(GraphHeader, takes_the_stack_that_is_stated) {
  std::vector<Model> models = {columns_over_and_over()};
#ifdef LOCKSTEP_ONNX
  models.push_back(load(std::string(LOCKSTEP_TEST_DATA) + "/exported/graph_normalised_opset17.onnx"));
#endif
  for (const Model& model : models) {
    const std::string text = export_header(model, {.name = "net"}).text;
    int most_double = 0, most_float = 0, most_alone = 0;
    ASSERT_EQ(std::sscanf(text.c_str() + text.find("A batch takes"),
                          "A batch takes at most %d kB of stack in double and %d kB in float, one sample %d kB.",
                          &most_double, &most_float, &most_alone),
              3);
    write("net.h", text.data(), text.size());
    const auto call = [&](const std::string& function, const std::string& x, const std::string& y,
                          const std::string& pitch, const std::string& strides) {
      return "  net_evaluate" + function + arguments(model, x, y, pitch, strides) + ");\n  return unused;\n}\n";
    };
    const std::string program = testing::stack_program(
        "#include \"net.h\"\nstatic double x[NET_INPUTS * 100], y[NET_OUTPUTS * 100];\n"
        "static float u[NET_INPUTS * 100], v[NET_OUTPUTS * 100];\n"
        "static void *in_double(void *unused) {\n" +
        call("_batch_f64(100, ", "x", "y", " * 100", ", 1, 100") + "static void *in_float(void *unused) {\n" +
        call("_batch_f32(100, ", "u", "v", " * 100", ", 1, 100") + "static void *alone(void *unused) {\n" +
        call("_f64(", "x", "y", "", ""));
    write("stack.c", program.data(), program.size());
    for (const std::string& command : testing::compilers_of_stacks(LOCKSTEP_TEST_CC)) {
      ASSERT_EQ(run(command + " -Wall -Wextra stack.c -o stack -lm -lpthread && ./stack"), 0) << read("messages.txt");
      std::istringstream numbers(read("messages.txt"));
      int nothing = 0, in_double = 0, in_float = 0, alone = 0;
      numbers >> nothing >> in_double >> in_float >> alone;
      ASSERT_TRUE(numbers) << read("messages.txt");
      EXPECT_GT(in_double - nothing, (most_double - 12) * 1024 / 2) << command;
      EXPECT_LE(in_double - nothing, most_double * 1024) << command;
      EXPECT_LE(in_float - nothing, most_float * 1024) << command;
      EXPECT_LE(alone - nothing, most_alone * 1024) << command;
    }
  }
}

TEST_F(GraphHeader, directions_read_the_weights_that_the_values_read) {
  const Model net = random_net(5), narrow = Model::from_mlp(mlp::random_mlp({3, 20, 20, 5}, {ActivationKind::tanh}, 7));
  for (const HeaderLanguage language : {HeaderLanguage::c, HeaderLanguage::cuda}) {
    const HeaderOptions options{.language = language};
    for (const Model& model : {net, narrow}) {
      const std::size_t weights = export_header(model, options).weight_count;
      ASSERT_GT(weights, 0u);
      EXPECT_EQ(export_header(derivative_model(model, Derivative::jvp), options).weight_count, weights);
    }
    const ExportedHeader jacobian = export_header(derivative_model(narrow, Derivative::jacobian), options);
    EXPECT_EQ(jacobian.weight_count, export_header(narrow, options).weight_count);
    // Three layers for the values, two for all directions: what the first makes of each is a column of its weights.
    EXPECT_THAT(jacobian.text, HasSubstr("closure_layer4"));
    EXPECT_THAT(jacobian.text, ::testing::Not(HasSubstr("closure_layer5")));
  }
}

TEST_F(GraphHeader, nets_without_weights_have_no_array_of_them) {
  graph::testing::Builder b;
  b.output(b.add(Clip{-1, 1}, {b.input(2)}));
  for (const HeaderLanguage language : {HeaderLanguage::c, HeaderLanguage::cuda}) {
    HeaderOptions options;
    options.language = language;
    EXPECT_THAT(export_header(named(b.graph), options).text, ::testing::Not(HasSubstr("weights")));
  }
}

TEST_F(GraphHeader, ports_give_parameters_their_names) {
  Model model = every_operation();
  model.inputs[1].name = "b-1";
  model.inputs[2].name = "b 1";
  for (Node& node : model.nodes) {
    for (std::string& input : node.inputs) input = input == "in1" ? "b-1" : input == "in2" ? "b 1" : input;
  }
  const std::string text = export_header(model).text;
  EXPECT_THAT(text, HasSubstr("const float *in_in0, const float *in_b_1, const float *in_b_1_2, const float *in_in3"));
  EXPECT_THAT(text, HasSubstr("ptrdiff_t in_b_1_2_feature_stride"));
  model.inputs[2].name = "b-1_sample_stride";
  for (Node& node : model.nodes) {
    for (std::string& input : node.inputs) input = input == "b 1" ? "b-1_sample_stride" : input;
  }
  EXPECT_THAT(export_header(model).text, HasSubstr("const float *in_b_1, const float *in_b_1_sample_stride_2, "));
}

}  // namespace
}  // namespace lockstep::nn
