// Every model of testdata/ against outputs computed by others, to bounds derived from the arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

#include "lockstep/core/hdf5.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/hdf5_model.h"
#include "lockstep/nn/load.h"

namespace lockstep::nn {
namespace {

std::filesystem::path data(const std::string& name) { return std::filesystem::path(LOCKSTEP_TEST_DATA) / name; }

// The largest error each output can have when the net is evaluated with unit roundoff u, to first order.
// Each step makes an error of its own, for any order of its sums (Higham, Accuracy and Stability of Numerical
// Algorithms, sections 3.1 and 3.4; gamma(n) = n u / (1 - n u)):
//   standardisation   gamma(2) |x'|: a subtraction and a division
//   dense, k inputs   gamma(k + 1) (|b| + sum |w||x|): k products and k additions, fused or not
//   tanh              the stated ulps of the result, an ulp being at most 2 u of it; relu none
//   rescaling         gamma(2) (|y s| + |m|)
// and reaches the outputs through the Jacobian J of all that follows: bound = sum over steps of |J| error. Second-order
// terms are smaller by the factor (error of a hidden value) x (sum |w|), below 1e-2 for these nets in float32; 1.05
// covers them and the rounding of this bound. Weights and inputs are float32 numbers: taking them costs nothing.
std::vector<double> error_bound(const Mlp& mlp, const std::vector<double>& input, double u, double tanh_ulps) {
  const auto gamma = [u](std::size_t n) { return static_cast<double>(n) * u / (1 - static_cast<double>(n) * u); };
  std::vector<double> x = input, input_error(input.size(), 0);
  if (!mlp.input_scaling.scale.empty()) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = (x[i] - mlp.input_scaling.shift[i]) / mlp.input_scaling.scale[i];
      input_error[i] = gamma(2) * std::fabs(x[i]);
    }
  }
  struct Step {
    std::vector<double> slope, error;  // of each output's activation; of each output
  };
  std::vector<Step> steps;
  for (const DenseLayer& layer : mlp.layers) {
    std::vector<double> y(layer.outputs);
    Step step{std::vector<double>(layer.outputs), std::vector<double>(layer.outputs)};
    for (std::size_t j = 0; j < layer.outputs; ++j) {
      double sum = layer.bias[j], magnitude = std::fabs(layer.bias[j]);
      for (std::size_t k = 0; k < layer.inputs; ++k) {
        sum += layer.weights[j * layer.inputs + k] * x[k];
        magnitude += std::fabs(layer.weights[j * layer.inputs + k] * x[k]);
      }
      const double error = gamma(layer.inputs + 1) * magnitude;
      switch (layer.activation.kind) {
        case ActivationKind::identity:
          y[j] = sum;
          step.slope[j] = 1;
          step.error[j] = error;
          break;
        case ActivationKind::relu:
          y[j] = sum > 0 ? sum : 0;
          step.slope[j] = sum > -error ? 1 : 0;
          step.error[j] = step.slope[j] * error;
          break;
        case ActivationKind::tanh:
          y[j] = std::tanh(sum);
          step.slope[j] = 1 - y[j] * y[j];
          step.error[j] = step.slope[j] * error + tanh_ulps * 2 * u * std::fabs(y[j]);
          break;
        default:
          ADD_FAILURE() << "no bound derived for this activation";
      }
    }
    steps.push_back(std::move(step));
    x = std::move(y);
  }
  const std::size_t outputs = mlp.outputs();
  std::vector<double> bound(outputs, 0), jacobian(outputs * outputs, 0);  // [output][value of the present step]
  for (std::size_t i = 0; i < outputs; ++i) {
    jacobian[i * outputs + i] = 1;
    if (mlp.output_scaling.scale.empty()) continue;
    const double scale = mlp.output_scaling.scale[i];
    jacobian[i * outputs + i] = scale;
    bound[i] = gamma(2) * (std::fabs(x[i] * scale) + std::fabs(mlp.output_scaling.shift[i]));
  }
  const auto pass = [&](const std::vector<double>& error) {
    for (std::size_t i = 0; i < outputs; ++i) {
      for (std::size_t j = 0; j < error.size(); ++j) bound[i] += std::fabs(jacobian[i * error.size() + j]) * error[j];
    }
  };
  for (std::size_t l = mlp.layers.size(); l-- > 0;) {
    const DenseLayer& layer = mlp.layers[l];
    pass(steps[l].error);
    std::vector<double> before(outputs * layer.inputs, 0);
    for (std::size_t i = 0; i < outputs; ++i) {
      for (std::size_t j = 0; j < layer.outputs; ++j) {
        const double slope = jacobian[i * layer.outputs + j] * steps[l].slope[j];
        for (std::size_t k = 0; k < layer.inputs; ++k) {
          before[i * layer.inputs + k] += slope * layer.weights[j * layer.inputs + k];
        }
      }
    }
    jacobian = std::move(before);
  }
  pass(input_error);
  for (double& b : bound) b *= 1.05;
  return bound;
}

struct Golden {
  std::size_t samples, inputs, outputs;
  std::vector<double> in, out;
};

Golden read_golden(const std::string& name) {
  const hdf5::File file = hdf5::File::open(data(name));
  const hdf5::Dataset in = file.dataset("inputs"), out = file.dataset("outputs_f64");
  return {in.shape()[0], in.shape()[1], out.shape()[1], in.read<double>(), out.read<double>()};
}

// Largest |ours - golden| / bound over all samples and outputs.
template <class T>
double worst_share_of_bound(const Model& model, const Golden& golden) {
  const Plan<T> plan = compile<T>(model);
  const Mlp mlp = to_mlp(model);
  EXPECT_EQ(plan.inputs(), golden.inputs);
  EXPECT_EQ(plan.outputs(), golden.outputs);
  const std::vector<T> in(golden.in.begin(), golden.in.end());
  std::vector<T> out(golden.samples * golden.outputs);
  plan.evaluate(MatrixView<const T>::row_major(in.data(), golden.samples, golden.inputs),
                MatrixView<T>::row_major(out.data(), golden.samples, golden.outputs));
  double worst = 0;
  for (std::size_t s = 0; s < golden.samples; ++s) {
    const std::vector<double> input(golden.in.begin() + static_cast<std::ptrdiff_t>(s * golden.inputs),
                                    golden.in.begin() + static_cast<std::ptrdiff_t>((s + 1) * golden.inputs));
    // Ours: tanh to 2 ulp, as the kernels promise. NumPy's: 4 ulp, the bound of its vector functions.
    const std::vector<double> ours = error_bound(mlp, input, std::numeric_limits<T>::epsilon() / 2, 2);
    const std::vector<double> theirs = error_bound(mlp, input, std::numeric_limits<double>::epsilon() / 2, 4);
    for (std::size_t j = 0; j < golden.outputs; ++j) {
      const std::size_t i = s * golden.outputs + j;
      worst = std::max(worst, std::fabs(static_cast<double>(out[i]) - golden.out[i]) / (ours[j] + theirs[j]));
    }
  }
  return worst;
}

class GoldenTest : public ::testing::TestWithParam<const char*> {
 protected:
  Model model_ = load(data(GetParam() + std::string(".safetensors")));
  Golden golden_ = read_golden(GetParam() + std::string(".golden.h5"));
};

TEST_P(GoldenTest, float32_outputs_lie_within_the_derived_bound) {
  const double worst = worst_share_of_bound<float>(model_, golden_);
  RecordProperty("share_of_bound", std::to_string(worst));
  EXPECT_LE(worst, 1);
}

TEST_P(GoldenTest, float64_outputs_lie_within_the_derived_bound) {
  const double worst = worst_share_of_bound<double>(model_, golden_);
  RecordProperty("share_of_bound", std::to_string(worst));
  EXPECT_LE(worst, 1);
}

TEST_P(GoldenTest, one_weight_off_by_a_part_in_ten_thousand_is_noticed) {
  // The bounds are worst cases: this shows that they still tell a wrong net from the right one in float64.
  for (Node& node : model_.nodes) {
    if (auto* dense = std::get_if<Dense>(&node.operation)) {
      dense->weights[0] *= 1 + 1e-4;
      break;
    }
  }
  EXPECT_GT(worst_share_of_bound<double>(model_, golden_), 1);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest,
                         ::testing::Values("lorenz_tanh_3_100_3", "peaks_relu_2_20_5_1", "ocean_relu_32_128_128_31",
                                           "qlknn_7_11_tanh_10_133x5_8"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Golden, the_packages_own_rows_of_qlknn_are_met_in_float64) {
  const Model model = load(data("qlknn_7_11_tanh_10_133x5_8.safetensors"));
  EXPECT_LE(worst_share_of_bound<double>(model, read_golden("qlknn_7_11_package_rows.golden.h5")), 1);
}

}  // namespace
}  // namespace lockstep::nn
