// Operations of keras.ops in Keras' files: its own answers, Python's slices, and words for what mixes samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/hdf5.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/nn/keras.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/net_plan.h"

namespace lockstep::nn {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

// Less than 30 operations on the way, on numbers below 16, sums of at most 10 products, in float32 should Keras compute
// in that: 30 * 10 * 2^-24 * 16 = 3e-4. A wrong operation shows in the first digits.
TEST(KerasOperations, give_keras_own_answers_from_both_formats) {
  const std::string name = std::string(LOCKSTEP_TEST_DATA) + "/keras/keras3_operations";
  const hdf5::File file = hdf5::File::open(name + ".samples.h5");
  const auto x = file.dataset("input").read<double>();
  for (const char* ending : {".h5", ".keras"}) {
    const Model model = load(name + ending);
    ASSERT_EQ(model.outputs.size(), 3u);
    std::vector<std::vector<double>> found;
    std::vector<MatrixView<double>> out;
    for (const Port& port : model.outputs) {
      std::vector<double>& numbers = found.emplace_back(16 * port.features.size());
      out.push_back(MatrixView<double>::row_major(numbers.data(), 16, port.features.size()));
    }
    const MatrixView<const double> in[] = {MatrixView<const double>::row_major(x.data(), 16, 5)};
    NetPlan<double>::compile(model).evaluate(in, out);
    for (std::size_t p = 0; p < found.size(); ++p) {
      const std::string& port = model.outputs[p].name;
      EXPECT_THAT(found[p], Pointwise(DoubleNear(3e-4), file.dataset(port).read<double>())) << port << ending;
    }
  }
}

// A model of one operation on x [batch, 4] and, before it, on column = x[:, 1], as a test writes it.
class OneOperationTest : public ::testing::Test {
 protected:
  OneOperationTest()
      : path_(std::filesystem::path(::testing::TempDir()) /
              ("lockstep-keras-operation-" + std::to_string(::getpid()) + ".h5")) {}
  ~OneOperationTest() override { std::filesystem::remove(path_); }

  static std::string slice(const std::string& start, const std::string& stop, const std::string& step = "null") {
    return R"({"class_name":"__slice__","config":{"start":)" + start + R"(,"stop":)" + stop + R"(,"step":)" + step +
           "}}";
  }
  static std::string tensor(const std::string& layer, const std::string& shape) {
    return R"({"class_name":"__keras_tensor__","config":{"shape":)" + shape +
           R"(,"dtype":"float32","keras_history":[")" + layer + R"(",0,0]}})";
  }
  static std::string operation(const std::string& name, const std::string& class_name, const std::string& arguments,
                               const std::string& config = "") {
    return R"({"module":"keras.src.ops.numpy","class_name":")" + class_name + R"(","name":")" + name +
           R"(","config":{"name":")" + name + '"' + config + R"(},"inbound_nodes":[{"args":[)" + arguments +
           R"(],"kwargs":{}}]})";
  }
  Model read(const std::string& class_name, const std::string& arguments, const std::string& config = "") const {
    const std::string input = R"({"module":"keras.layers","class_name":"InputLayer","name":"x",)"
                              R"("config":{"batch_shape":[null,4],"name":"x"},"inbound_nodes":[]})";
    std::string text = R"({"class_name":"Functional","config":{"name":"f","layers":[)" + input + "," +
                       operation("column", "GetItem", x_ + ",[" + slice("null", "null") + ",1]") + "," +
                       operation("made", class_name, arguments, config) +
                       R"(],"input_layers":[["x",0,0]],"output_layers":[["made",0,0]]}})";
    const std::string module = R"("module":"keras.src.ops.numpy",)";
    for (std::size_t at; !modules_ && (at = text.find(module)) != text.npos;) text.erase(at, module.size());
    hdf5::File file = hdf5::File::create(path_, Existing::replace);
    file.set_attribute("model_config", text);
    file.set_attribute("keras_version", std::string("3.15.1"));
    file.create_group("model_weights");
    file.publish();
    file.close();
    return read_keras_hdf5(path_);
  }
  std::vector<double> answer(const std::string& class_name, const std::string& arguments,
                             const std::string& config = "") const {
    const Model model = read(class_name, arguments, config);
    const std::vector<double> x{1, 20, -3, 0.5};
    std::vector<double> y(model.outputs[0].features.size());
    NetPlan<double>::compile(model).evaluate(MatrixView<const double>::row_major(x.data(), 1, x.size()),
                                             MatrixView<double>::row_major(y.data(), 1, y.size()));
    return y;
  }
  std::vector<double> sliced(const std::string& key) const {
    return answer("GetItem", x_ + ",[" + slice("null", "null") + "," + key + "]");
  }
  std::string refusal(const std::string& class_name, const std::string& arguments,
                      const std::string& config = "") const {
    return message_of([&] { read(class_name, arguments, config); });
  }

  const std::string x_ = tensor("x", "[null,4]"), column_ = tensor("column", "[null]");
  std::filesystem::path path_;
  bool modules_ = true;  // named, as .keras files do
};

TEST_F(OneOperationTest, slices_are_pythons) {
  EXPECT_THAT(sliced(slice("null", "2")), ElementsAre(1, 20));
  EXPECT_THAT(sliced(slice("-1", "null")), ElementsAre(0.5));
  EXPECT_THAT(sliced(slice("null", "null", "-1")), ElementsAre(0.5, -3, 20, 1));
  EXPECT_THAT(sliced(slice("-9", "9", "3")), ElementsAre(1, 0.5));
  EXPECT_THAT(sliced(slice("3", "0", "-2")), ElementsAre(0.5, 20));
  EXPECT_THAT(sliced("-2"), ElementsAre(-3));
  EXPECT_THAT(sliced(slice("null", "null")), ElementsAre(1, 20, -3, 0.5));
  EXPECT_THAT(answer("GetItem", x_ + R"(,[{"class_name":"__ellipsis__","config":{}},)" + slice("1", "3") + "]"),
              ElementsAre(20, -3));
  EXPECT_THAT(answer("GetItem", column_ + ",[" + slice("null", "null") + ",null]"), ElementsAre(20));
  EXPECT_THAT(refusal("GetItem", x_ + ",[" + slice("null", "null") + ",4]"),
              AllOf(HasSubstr("layer made: found feature 4, expected one of 4")));
  EXPECT_THAT(refusal("GetItem", x_ + ",[" + slice("null", "null") + "," + slice("2", "2") + "]"),
              HasSubstr("a choice of no features"));
}

TEST_F(OneOperationTest, numbers_stand_on_either_side_of_arithmetic) {
  EXPECT_THAT(answer("Subtract", x_ + ",1.5"), ElementsAre(-0.5, 18.5, -4.5, -1));
  EXPECT_THAT(answer("Subtract", "1.5," + x_), ElementsAre(0.5, -18.5, 4.5, 1));
  EXPECT_THAT(answer("TrueDivide", x_ + ",2"), ElementsAre(0.5, 10, -1.5, 0.25));
  EXPECT_THAT(answer("Divide", "2," + x_), ElementsAre(2, 0.1, -2.0 / 3, 4));
  EXPECT_THAT(answer("Multiply", x_ + R"(,{"class_name":"__numpy__","config":{"value":[1,2,0,4],"dtype":"float32"}})"),
              ElementsAre(1, 40, 0, 2));
  EXPECT_THAT(answer("Power", x_ + ",3"), ElementsAre(1, 8000, -27, 0.125));
  EXPECT_THAT(answer("Mod", x_ + ",4"), ElementsAre(1, 0, 1, 0.5));
  EXPECT_THAT(answer("Greater", x_ + ",0.75"), ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(answer("NotEqual", x_ + ",1"), ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(answer("LogicalAnd", x_ + ",0"), ElementsAre(0, 0, 0, 0));
}

TEST_F(OneOperationTest, functions_of_each_element_are_those_of_mathematics) {
  using Function = double (*)(double);
  for (const auto& [name, function] : {std::pair<std::string, Function>("Tan", &std::tan),
                                       {"Sinh", &std::sinh},
                                       {"Cosh", &std::cosh},
                                       {"Arctan", &std::atan},
                                       {"Arcsinh", &std::asinh},
                                       {"Ceil", &std::ceil},
                                       {"Sign", [](double x) { return x < 0   ? -1.0
                                                                      : x > 0 ? 1.0
                                                                              : 0.0; }},
                                       {"Arcsin", &std::asin},
                                       {"Arccos", &std::acos},
                                       {"Arctanh", &std::atanh},
                                       {"Arccosh", &std::acosh},
                                       {"Log1p", &std::log1p}}) {
    const std::vector<double> y = answer(name, x_), x{1, 20, -3, 0.5};
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double exact = function(x[i]);
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(y[i])) << name << " of " << x[i];
      } else {
        EXPECT_DOUBLE_EQ(y[i], exact) << name << " of " << x[i];
      }
    }
  }
  EXPECT_THAT(answer("Arctan2", x_ + ",-2"),
              ElementsAre(std::atan2(1, -2), std::atan2(20, -2), std::atan2(-3, -2), std::atan2(0.5, -2)));
  EXPECT_THAT(answer("Arctan2", column_ + "," + column_), ElementsAre(DoubleNear(std::atan(1), 1e-15)));
}

TEST_F(OneOperationTest, casts_are_known_without_a_module) {
  modules_ = false;
  EXPECT_THAT(answer("Cast", x_, R"(,"dtype":"float32")"), ElementsAre(1, 20, -3, 0.5));
  EXPECT_THAT(answer("Cast", x_, R"(,"dtype":"bool")"), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(refusal("Cast", x_, R"(,"dtype":"int32")"), HasSubstr("a rounding to int32"));
}

TEST_F(OneOperationTest, a_root_by_power_is_that_of_c) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(answer("Power", x_ + ",0.5"),
              ElementsAre(1, DoubleNear(std::sqrt(20), 1e-14), ::testing::IsNan(), DoubleNear(std::sqrt(0.5), 1e-15)));
  const Model model = read("Power", x_ + ",0.5");
  const std::vector<double> x(4, -kInfinity);
  std::vector<double> y(4);
  NetPlan<double>::compile(model).evaluate(MatrixView<const double>::row_major(x.data(), 1, 4),
                                           MatrixView<double>::row_major(y.data(), 1, 4));
  EXPECT_THAT(y, ::testing::Each(kInfinity));
}

TEST_F(OneOperationTest, what_goes_across_the_batch_is_refused) {
  EXPECT_THAT(refusal("Add", x_ + "," + column_),
              AllOf(HasSubstr("layer made: found values [batch] and [batch, features]"),
                    HasSubstr("x[:, 2:3] instead of x[:, 2]")));
  EXPECT_THAT(refusal("GetItem", x_ + ",0"), HasSubstr("a choice of samples"));
  EXPECT_THAT(refusal("GetItem", x_ + ",[" + slice("null", "2") + "," + slice("null", "2") + "]"),
              HasSubstr("a choice of samples"));
  EXPECT_THAT(refusal("Sum", x_, R"(,"axis":null,"keepdims":false)"), HasSubstr("axis null"));
  EXPECT_THAT(refusal("Sum", x_, R"(,"axis":0,"keepdims":true)"), HasSubstr("axis 0"));
  EXPECT_THAT(refusal("Sum", column_, R"(,"axis":-1,"keepdims":true)"), HasSubstr("found a value [batch]"));
  EXPECT_THAT(refusal("Concatenate", "[" + column_ + "," + column_ + "]", R"(,"axis":-1)"),
              HasSubstr("a value [batch]"));
  EXPECT_THAT(refusal("Add", column_ + ",[1,2]"), HasSubstr("a value [batch] and several numbers"));
  EXPECT_THAT(answer("Stack", "[" + column_ + "," + column_ + "]", R"(,"axis":1)"), ElementsAre(20, 20));
}

TEST_F(OneOperationTest, what_is_not_known_is_named) {
  EXPECT_THAT(refusal("Fft", x_), AllOf(HasSubstr("layer made: found the operation Fft"), HasSubstr("tanh, exp, log"),
                                        HasSubstr("bring it as ONNX")));
  EXPECT_THAT(refusal("Round", x_, R"(,"decimals":2)"), HasSubstr("a rounding to decimals"));
  EXPECT_THAT(refusal("Add", x_), HasSubstr("fewer arguments than it takes"));
  EXPECT_THAT(refusal("Add", x_ + R"(,"text")"), HasSubstr("the argument \"text\""));
  EXPECT_THAT(refusal("Add", x_ + ",[1,2,3]"), HasSubstr("3"));
}

}  // namespace
}  // namespace lockstep::nn
