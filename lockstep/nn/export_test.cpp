// Exported C headers, compiled by this machine's C and C++ compilers and run: their bits against the library's.
#include "lockstep/nn/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/math/detail/samples.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/testing/stack_use.h"

namespace lockstep::nn {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "lockstep-export-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path_ / name) << text; }
  template <class T>
  void write(const std::string& name, const std::vector<T>& numbers) const {
    std::ofstream(path_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(numbers.data()), static_cast<std::streamsize>(numbers.size() * sizeof(T)));
  }
  template <class T>
  std::vector<T> read(const std::string& name) const {
    std::ifstream file(path_ / name, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::vector<T> numbers(bytes.size() / sizeof(T));
    std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
    return numbers;
  }
  // The exit code of a command run inside; what it says goes to messages.txt.
  int run(const std::string& command) const {
    return std::system(("cd '" + path_.string() + "' && " + command + " > messages.txt 2>&1").c_str());
  }
  std::string messages() const {
    std::ifstream file(path_ / "messages.txt");
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::filesystem::path path_;
};

// One net with the inputs it is tried on, [feature][sample].
struct Case {
  Mlp mlp;
  std::vector<float> singles;
  std::vector<double> doubles;
};

std::vector<Case> every_activation() {
  std::vector<Case> cases;
  std::vector<Activation> activations(all_activations().begin(), all_activations().end());
  activations.push_back({ActivationKind::leaky_relu, -0.3});
  activations.push_back({ActivationKind::celu, 1.7});
  for (const Activation& activation : activations) {
    Case one;
    one.mlp.layers.push_back({.inputs = 1, .outputs = 1, .weights = {1}, .bias = {0}, .activation = activation});
    one.singles = math::all_floats_by(400009);
    one.doubles = math::double_samples(10000, 7);
    cases.push_back(one);
  }
  return cases;
}

std::vector<Case> shapes() {
  std::vector<Case> cases;
  std::mt19937 random(11);
  std::uniform_real_distribution<double> unit(-1, 1);
  const std::vector<std::vector<std::size_t>> widths = {{1, 1}, {3, 100, 3}, {5, 17, 9, 1}, {2, 4, 8, 16, 3}, {33, 31}};
  for (std::size_t i = 0; i < widths.size(); ++i) {
    Case one;
    one.mlp = mlp::random_mlp(widths[i], all_activations()[6 + i], static_cast<unsigned>(i));
    for (DenseLayer& layer : one.mlp.layers) {  // as float32 has them in the first, as float64 in the others
      for (double& w : layer.weights) w = i == 0 ? static_cast<float>(w) : w;
      for (double& b : layer.bias) b = i == 0 ? static_cast<float>(b) : b;
    }
    if (i % 2 == 0) {
      for (std::size_t c = 0; c < widths[i].front(); ++c) {
        one.mlp.input_scaling.shift.push_back(unit(random));
        one.mlp.input_scaling.scale.push_back(1.5 + unit(random));
      }
    }
    if (i % 2 == 1) {
      for (std::size_t c = 0; c < widths[i].back(); ++c) one.mlp.output_scaling.scale.push_back(unit(random));
    }
    for (std::size_t s = 0; s < 37 * widths[i].front(); ++s) {  // two tiles and five
      one.doubles.push_back(3 * unit(random));
      one.singles.push_back(static_cast<float>(one.doubles.back()));
    }
    cases.push_back(one);
  }
  return cases;
}

// Reads inN.f32 and inN.f64, [feature][sample], and writes outN.f32 and outN.f64, [sample][feature]. The exit code is
// 3 where one sample and the batch disagree, 4 where the header's own check fails.
std::string program_text(std::size_t count, WeightsIn weights_in) {
  const bool argument = weights_in == WeightsIn::argument;
  std::string text = "#include <stdio.h>\n#include <stdlib.h>\n";
  for (std::size_t i = 0; i < count; ++i) text += "#include \"net" + std::to_string(i) + ".h\"\n";
  text += R"(
static void *get(const char *name, size_t size, size_t *count) {
  FILE *file = fopen(name, "rb");
  void *numbers;
  if (!file) exit(9);
  fseek(file, 0, SEEK_END);
  *count = (size_t)ftell(file) / size;
  rewind(file);
  numbers = malloc(*count * size + 1);
  if (fread(numbers, size, *count, file) != *count) exit(8);
  fclose(file);
  return numbers;
}
static void put(const char *name, const void *numbers, size_t size, size_t count) {
  FILE *file = fopen(name, "wb");
  if (!file || fwrite(numbers, size, count, file) != count) exit(7);
  fclose(file);
}
)";
  const auto one = [&](const std::string& n, const std::string& type, const std::string& suffix) {
    const std::string net = "net" + n, w = argument ? "weights, " : "";
    return "{\n  size_t total, samples, s, i;\n  " + type + " *in = (" + type + " *)get(\"in" + n + "." + suffix +
           "\", sizeof(" + type + "), &total);\n  " + type + " x[NET" + n + "_INPUTS], y[NET" + n +
           "_OUTPUTS], *out;\n" + "  samples = total / NET" + n + "_INPUTS;\n  out = (" + type +
           " *)malloc(samples * sizeof y);\n" + "  " + net + "_evaluate_batch_" + suffix + "(" + w +
           "samples, in, 1, (ptrdiff_t)samples, out, NET" + n + "_OUTPUTS, 1);\n" +
           "  for (s = 0; s < samples; ++s) {\n    for (i = 0; i < sizeof x / sizeof *x; ++i) x[i] = in[i * samples + "
           "s];\n    " +
           net + "_evaluate_" + suffix + "(" + w + "x, y);\n" +
           "    for (i = 0; i < sizeof y / sizeof *y; ++i) {\n      const " + type +
           " a = y[i], b = out[s * (sizeof y / sizeof *y) + i];\n      if (a == a || b == b)\n        if (memcmp(&a, "
           "&b, sizeof a)) exit(3);\n    }\n  }\n" +
           "  put(\"out" + n + "." + suffix + "\", out, sizeof y, samples);\n  free(in);\n  free(out);\n  }\n";
  };
  for (std::size_t i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    text += "static void run" + n + "(void) {\n";
    if (argument) {
      text += "  size_t numbers;\n  net" + n + "_weight *weights = (net" + n + "_weight *)get(\"weights" + n +
              "\", sizeof *weights, &numbers);\n  if (numbers != NET" + n + "_WEIGHTS) exit(6);\n";
    }
    text += "  if (net" + n + "_check(" + (argument ? "weights" : "") + ")) exit(4);\n  " + one(n, "float", "f32") +
            "  " + one(n, "double", "f64") + (argument ? "  free(weights);\n" : "") + "}\n";
  }
  text += "int main(void) {\n";
  for (std::size_t i = 0; i < count; ++i) text += "  run" + std::to_string(i) + "();\n";
  return text + "  return 0;\n}\n";
}

std::string replaced_all(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size()) text.replace(at, what.size(), by);
  return text;
}

// The CUDA header's functions on the host: one sample by one thread, then groups of threads that meet at a barrier.
// With nvcc also kernels of a thread, a warp and a block, which run where there is a card.
std::string cuda_program_text(std::size_t count) {
  std::string text =
      "#include <barrier>\n#include <cstdio>\n#include <cstdlib>\n#include <thread>\n#include <vector>\n";
  for (std::size_t i = 0; i < count; ++i) text += "#include \"net" + std::to_string(i) + ".h\"\n";
  text += R"(
struct Team {
  int rank;
  std::barrier<>* barrier;
  int members;
  int thread_rank() const { return rank; }
  int size() const { return members; }
  void sync() const { barrier->arrive_and_wait(); }
};
template <class Work>
void together(int members, Work work) {
  std::barrier<> barrier(members);
  std::vector<std::thread> threads;
  for (int r = 0; r < members; ++r) threads.emplace_back([&, r] { work(Team{r, &barrier, members}); });
  for (std::thread& thread : threads) thread.join();
}
template <class T>
std::vector<T> get(const char* name) {
  FILE* file = fopen(name, "rb");
  if (!file) exit(9);
  fseek(file, 0, SEEK_END);
  std::vector<T> numbers(ftell(file) / sizeof(T));
  rewind(file);
  if (fread(numbers.data(), sizeof(T), numbers.size(), file) != numbers.size()) exit(8);
  fclose(file);
  return numbers;
}
template <class T>
void put(const char* name, const std::vector<T>& numbers) {
  FILE* file = fopen(name, "wb");
  if (!file || fwrite(numbers.data(), sizeof(T), numbers.size(), file) != numbers.size()) exit(7);
  fclose(file);
}
template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if ((a[i] == a[i] || b[i] == b[i]) && memcmp(&a[i], &b[i], sizeof(T))) return false;
  return true;
}
bool has_card() {
#ifdef __CUDACC__
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
#else
  return false;
#endif
}
)";
  for (std::size_t i = 0; i < count; ++i) {
    text += replaced_all(R"(
#ifdef __CUDACC__
template <class T>
__global__ void thread{N}(int n, const T* in, T* out) {
  for (int s = threadIdx.x; s < n; s += blockDim.x) {
    net{N}_evaluate(in + s, (ptrdiff_t)n, out + s * NET{N}_OUTPUTS, (ptrdiff_t)1);
  }
}
template <class Group, class T>
__global__ void group{N}(int n, const T* in, T* out) {
  __shared__ T scratch[net{N}_scratch(3)];
  for (int s = 0; s < n; s += 3) {
    net{N}_evaluate_group(Group(), n - s < 3 ? n - s : 3, in + s, 1, n, out + s * NET{N}_OUTPUTS, NET{N}_OUTPUTS, 1, scratch);
  }
}
#endif
template <class T>
void run{N}(const char* in_name, const char* out_name) {
  const std::vector<T> in = get<T>(in_name);
  const int n = (int)in.size() / NET{N}_INPUTS;
  std::vector<T> out(n * NET{N}_OUTPUTS), again(out.size());
  for (int s = 0; s < n; ++s) net{N}_evaluate(in.data() + s, (ptrdiff_t)n, out.data() + s * NET{N}_OUTPUTS, (ptrdiff_t)1);
  put(out_name, out);
  // Few samples, where members share out single outputs, and many, where they share out blocks.
  for (const int members : {3, 4}) {
    const int samples = n < 37 ? n : members == 3 ? 37 : 1;
    again = out;
    for (int s = 0; s < samples * NET{N}_OUTPUTS; ++s) again[s] = T(-77);
    std::vector<T> scratch(net{N}_scratch(samples));
    together(members, [&](const Team& team) {
      net{N}_evaluate_group(team, samples, in.data(), 1, n, again.data(), NET{N}_OUTPUTS, 1, scratch.data());
    });
    if (!same(out, again)) exit(3);
  }
#ifdef __CUDACC__
  if (!has_card()) return;
  T *x, *y;
  if (cudaMalloc(&x, in.size() * sizeof(T)) != cudaSuccess || cudaMalloc(&y, out.size() * sizeof(T)) != cudaSuccess) exit(5);
  cudaMemcpy(x, in.data(), in.size() * sizeof(T), cudaMemcpyHostToDevice);
  for (int form = 0; form < 3; ++form) {
    if (form == 0) thread{N}<<<1, 64>>>(n, x, y);
    if (form == 1) group{N}<net{N}_warp><<<1, 32>>>(n, x, y);
    if (form == 2) group{N}<net{N}_thread_block><<<1, 96>>>(n, x, y);
    if (cudaMemcpy(again.data(), y, out.size() * sizeof(T), cudaMemcpyDeviceToHost) != cudaSuccess) exit(5);
    if (!same(out, again)) exit(2);
  }
  cudaFree(x);
  cudaFree(y);
#endif
}
)",
                         "{N}", std::to_string(i));
  }
  text += "int main() {\n  if (has_card()) puts(\"on a card too\");\n";
  for (std::size_t i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    text += "  if (net" + n + "_check()) exit(4);\n  run" + n + "<float>(\"in" + n + ".f32\", \"out" + n +
            ".f32\");\n  run" + n + "<double>(\"in" + n + ".f64\", \"out" + n + ".f64\");\n";
  }
  return text + "}\n";
}

// Numbers of which neither is NaN and whose bits differ, or of which one is NaN.
template <class T>
std::size_t different(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return a.size() + b.size() + 1;
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    count += (a[i] == a[i] || b[i] == b[i]) && std::memcmp(&a[i], &b[i], sizeof(T)) != 0;
  }
  return count;
}

template <class T>
std::vector<T> by_the_library(const Mlp& mlp, const std::vector<T>& in) {
  const std::size_t samples = in.size() / mlp.inputs();
  std::vector<T> out(samples * mlp.outputs());
  Plan<T>::compile(mlp).evaluate(MatrixView<const T>::column_major(in.data(), samples, mlp.inputs()),
                                 MatrixView<T>::row_major(out.data(), samples, mlp.outputs()));
  return out;
}

void expect_same_bits(const std::vector<Case>& cases, HeaderOptions options,
                      const std::vector<std::string>& compilers) {
  const Folder folder;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string n = std::to_string(i);
    options.name = "net" + n;
    const ExportedHeader header = export_header(Model::from_mlp(cases[i].mlp), options);
    folder.write("net" + n + ".h", header.text);
    folder.write("weights" + n, header.weights);
    folder.write("in" + n + ".f32", cases[i].singles);
    folder.write("in" + n + ".f64", cases[i].doubles);
  }
  const bool cuda = options.language == HeaderLanguage::cuda;
  folder.write("program.c", cuda ? cuda_program_text(cases.size()) : program_text(cases.size(), options.weights_in));
  for (const std::string& compiler : compilers) {
    ASSERT_EQ(folder.run(compiler + " program.c -o program -lm -lpthread"), 0) << compiler << "\n" << folder.messages();
    ASSERT_EQ(folder.messages(), "") << compiler;
    ASSERT_EQ(folder.run("./program"), 0) << compiler << ": see program_text()";
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const std::string n = std::to_string(i), what = compiler + ", " + to_string(cases[i].mlp.layers[0].activation);
      EXPECT_EQ(different(folder.read<float>("out" + n + ".f32"), by_the_library(cases[i].mlp, cases[i].singles)), 0u)
          << what;
      EXPECT_EQ(different(folder.read<double>("out" + n + ".f64"), by_the_library(cases[i].mlp, cases[i].doubles)), 0u)
          << what;
    }
  }
}

const std::string kStrictC = LOCKSTEP_TEST_CC " -std=c99 -O1 -Wall -Wextra -pedantic";
const std::string kCpp = LOCKSTEP_TEST_CXX " -x c++ -std=c++11 -O1 -Wall -Wextra -pedantic";
// GNU C contracts products and sums unless it is told otherwise: the header must tell it. Clang does so by `on`, and
// cannot be told otherwise by a text where it is given `fast`.
#ifdef __clang__
const std::string kContracting = LOCKSTEP_TEST_CC " -O2 -march=native -ffp-contract=on -Wall -Wextra";
#else
const std::string kContracting = LOCKSTEP_TEST_CC " -O2 -march=native -ffp-contract=fast -Wall -Wextra";
#endif

TEST(ExportedHeader, every_activation_has_the_bits_of_the_library) {
  expect_same_bits(every_activation(), {}, {kStrictC, kContracting});
}

TEST(ExportedHeader, nets_of_any_shape_have_the_bits_of_the_library_in_c_and_cpp) {
  expect_same_bits(shapes(), {}, {kStrictC, kCpp, kContracting});
}

TEST(ExportedHeader, weights_may_be_the_callers) {
  expect_same_bits(shapes(), {.weights_in = WeightsIn::argument}, {kStrictC, kCpp});
}

TEST(ExportedHeader, functions_of_a_thread_and_of_groups_have_the_bits_of_the_library) {
  const HeaderOptions cuda = {.language = HeaderLanguage::cuda};
  std::vector<Case> cases = shapes();
  cases.push_back(every_activation()[static_cast<std::size_t>(ActivationKind::sin)]);
  expect_same_bits(cases, cuda, {LOCKSTEP_TEST_CXX " -x c++ -std=c++20 -O1 -Wall -Wextra -pedantic"});
#ifdef LOCKSTEP_TEST_NVCC  // slow: two nets only
  expect_same_bits({cases[1], cases.back()}, cuda,
                   {LOCKSTEP_TEST_NVCC " -x cu -std=c++20 -arch=sm_90 -Werror all-warnings"});
#endif
}

TEST(ExportedHeader, its_own_check_notices_one_wrong_weight) {
  const Folder folder;
  Mlp mlp = mlp::random_mlp({3, 5, 2}, {ActivationKind::tanh, 0}, 1);
  mlp.layers[0].weights[4] = 0.34375;
  std::string text = export_header(Model::from_mlp(mlp)).text;
  ASSERT_THAT(text, HasSubstr(" 0.34375"));
  folder.write("right.c", text + "int main(void) { return closure_check(); }\n");
  text.replace(text.find(" 0.34375"), 8, " 0.34374");
  folder.write("wrong.c", text + "int main(void) { return closure_check() == 3; }\n");
  for (const char* name : {"right", "wrong"}) {
    ASSERT_EQ(folder.run(kStrictC + " " + name + ".c -o " + name + " -lm"), 0) << folder.messages();
  }
  EXPECT_EQ(folder.run("./right"), 0);
  EXPECT_NE(folder.run("./wrong"), 0);
}

#if defined(__x86_64__)
TEST(ExportedHeader, its_own_check_notices_denormal_numbers_that_are_flushed) {
  const Folder folder;
  const Model model = Model::from_mlp(mlp::random_mlp({3, 5, 2}, {ActivationKind::tanh, 0}, 1));
  const auto expect_noticed = [&](HeaderLanguage language, const std::string& compiler) {
    const std::string text = "#include <xmmintrin.h>\n" + export_header(model, {.language = language}).text;
    folder.write("flush.c", text +
                                "int main(int count, char** arguments) {\n  (void)arguments;\n"
                                "  if (count > 1) _mm_setcsr(_mm_getcsr() | 0x8040);\n  return closure_check();\n}\n");
    ASSERT_EQ(folder.run(compiler + " flush.c -o flush -lm"), 0) << folder.messages();
    EXPECT_EQ(folder.run("./flush"), 0);
    EXPECT_EQ(folder.run("./flush away; test $? -eq 3"), 0);
  };
  expect_noticed(HeaderLanguage::c, kStrictC);
  expect_noticed(HeaderLanguage::cuda, LOCKSTEP_TEST_CXX " -x c++ -std=c++20 -O2");
}
#endif

#ifdef LOCKSTEP_TEST_NVCC
TEST(ExportedHeader, its_own_check_runs_in_a_kernel) {
  const Folder folder;
  const Model model = Model::from_mlp(mlp::random_mlp({3, 5, 2}, {ActivationKind::tanh, 0}, 1));
  folder.write("closure.cuh", export_header(model, {.language = HeaderLanguage::cuda}).text);
  folder.write(
      "kernel.cu",
      std::string("#include \"closure.cuh\"\n__global__ void check(int* result) { *result = closure_check(); }\n"));
  const auto products = [&](const std::string& flags) {
    EXPECT_EQ(
        folder.run(LOCKSTEP_TEST_NVCC " -ptx -arch=sm_90 -Werror all-warnings " + flags + " kernel.cu -o kernel.ptx"),
        0)
        << folder.messages();
    return folder.run("grep -q 'mul.rn.ftz.f32' kernel.ptx") == 0;
  };
  EXPECT_FALSE(products(""));
  EXPECT_TRUE(products("-use_fast_math"));  // of the probe too, which is 0 then
}
#endif

// As a compiler that mistakes the loops over samples, in one lane of a tile or in what is left of it, or the threads of
// a group: where evaluations of one sample are right.
TEST(ExportedHeader, its_own_check_notices_samples_that_differ_in_a_batch_alone) {
  const Folder folder;
  const Model model = Model::from_mlp(mlp::random_mlp({3, 5, 2}, {ActivationKind::tanh, 0}, 1));
  struct Fault {
    const char *right, *wrong;
    int result;
  };
  const auto expect_results = [&](const std::string& text, const std::vector<Fault>& faults,
                                  const std::string& compiler, const std::string& ending) {
    for (const auto& [right, wrong, result] : faults) {
      std::string changed = text;
      const std::size_t at = changed.find(right);
      ASSERT_NE(at, std::string::npos) << right;
      changed.replace(at, std::string(right).size(), wrong);
      folder.write("check." + ending, changed + "int main(void) { return closure_check(); }\n");
      ASSERT_EQ(folder.run(compiler + " check." + ending + " -o check -lm"), 0) << folder.messages();
      EXPECT_EQ(folder.run("./check >/dev/null; test $? -eq " + std::to_string(result)), 0) << wrong;
    }
  };
  expect_results(export_header(model).text,
                 {{"sum1[s] = closure_fma_f32(w1, xk[s], sum1[s]);",
                   "sum1[s] = s == 7 ? w1 * xk[s] * 1.0000002f + sum1[s] : closure_fma_f32(w1, xk[s], sum1[s]);", 1},
                  {"sum3[s] = closure_fma_f64(w3, xk[s], sum3[s]);",
                   "sum3[s] += s == 15 ? 1e-12 : closure_fma_f64(w3, xk[s], 0);", 2},
                  {"out[i * out_feature_stride] = a[i];", "out[i * out_feature_stride] = a[0];", 1}},
                 kStrictC, "c");
  expect_results(export_header(model, {.language = HeaderLanguage::cuda}).text,
                 {{"y[(first + j) * samples + s] = ", "y[(first + j) * samples + s] = s == 2 ? T(0) : ", 3}},
                 LOCKSTEP_TEST_CXX " -x c++ -std=c++20 -O1", "cpp");
}

TEST(ExportedHeader, fast_math_does_not_compile) {
  const Folder folder;
  folder.write("fast.c", export_header(Model::from_mlp(mlp::random_mlp({1, 1}, {}, 1))).text);
  EXPECT_NE(folder.run(LOCKSTEP_TEST_CC " -ffast-math -c fast.c"), 0);
  EXPECT_THAT(folder.messages(), HasSubstr("-ffast-math changes results"));
  EXPECT_NE(folder.run(LOCKSTEP_TEST_CC " -ffinite-math-only -c fast.c"), 0);
  EXPECT_THAT(folder.messages(), HasSubstr("-ffinite-math-only changes results"));
}

TEST(ExportedHeader, words_from_the_model_cannot_leave_the_comment) {
  Model model = Model::from_mlp(mlp::random_mlp({1, 1}, {}, 1));
  model.provenance.attribution = "somebody */ #error escaped\n#error escaped";
  const std::string text = export_header(model).text;
  EXPECT_THAT(text, HasSubstr("attribution: somebody  / #error escaped #error escaped\n"));
}

// Calls both nets from one function: clang would add up the stacks of what it puts into one.
constexpr const char* kTwoNets = R"(
#include "one.h"
#include "two.h"
static double x[100 * 128], y[100 * 128];
static float u[100 * 128], v[100 * 128];
static void *in_double(void *unused) {
  one_evaluate_batch_f64(100, x, ONE_INPUTS, 1, y, ONE_OUTPUTS, 1);
  two_evaluate_batch_f64(100, x, TWO_INPUTS, 1, y, TWO_OUTPUTS, 1);
  return unused;
}
static void *in_float(void *unused) {
  one_evaluate_batch_f32(100, u, ONE_INPUTS, 1, v, ONE_OUTPUTS, 1);
  two_evaluate_batch_f32(100, u, TWO_INPUTS, 1, v, TWO_OUTPUTS, 1);
  return unused;
}
static void *alone(void *unused) {
  one_evaluate_f64(x, y);
  return unused;
}
)";

TEST(ExportedHeader, two_nets_in_one_function_take_the_stack_that_is_stated) {
  const Folder folder;
  const Model ocean = load(std::string(LOCKSTEP_TEST_DATA) + "/ocean_relu_32_128_128_31.safetensors");
  const Model qlknn = load(std::string(LOCKSTEP_TEST_DATA) + "/qlknn_7_11_tanh_10_133x5_8.safetensors");
  const std::string one = export_header(ocean, {.name = "one"}).text, two = export_header(qlknn, {.name = "two"}).text;
  EXPECT_THAT(one, HasSubstr("A batch takes at most 46 kB of stack in double and 25 kB in float, one sample 6 kB."));
  EXPECT_THAT(two, HasSubstr("A batch takes at most 51 kB of stack in double and 28 kB in float, one sample 7 kB."));
  EXPECT_THAT(export_header(ocean, {.language = HeaderLanguage::cuda, .name = "net"}).text, Not(HasSubstr("stack")));
  folder.write("one.h", one);
  folder.write("two.h", two);
  folder.write("stack.c", testing::stack_program(kTwoNets));
  for (const std::string& command : testing::compilers_of_stacks(LOCKSTEP_TEST_CC)) {
    ASSERT_EQ(folder.run(command + " -Wall -Wextra stack.c -o stack -lm -lpthread && ./stack"), 0) << folder.messages();
    std::istringstream numbers(folder.messages());
    int nothing = 0, in_double = 0, in_float = 0, alone = 0;
    numbers >> nothing >> in_double >> in_float >> alone;
    ASSERT_TRUE(numbers) << folder.messages();
    EXPECT_GT(in_double - nothing, 36 * 1024) << command;
    EXPECT_LE(in_double - nothing, 51 * 1024) << command;
    EXPECT_LE(in_float - nothing, 28 * 1024) << command;
    EXPECT_LE(alone - nothing, 6 * 1024) << command;
  }
}

TEST(ExportedHeader, names_that_c_does_not_allow_are_refused) {
  const Model model = Model::from_mlp(mlp::random_mlp({1, 1}, {}, 1));
  for (const char* name : {"", "3d", "a-b", "a b", "\xc3\xa4"}) {
    EXPECT_THROW(export_header(model, {.name = name}), Error) << name;
  }
}

TEST(ExportedHeader, numbers_that_float_does_not_hold_are_refused) {
  Mlp mlp = mlp::random_mlp({1, 1}, {}, 1);
  mlp.layers[0].weights[0] = 1e300;
  EXPECT_THAT(message_of([&] { export_header(Model::from_mlp(mlp)); }), HasSubstr("fits in float32"));
}

}  // namespace
}  // namespace lockstep::nn
