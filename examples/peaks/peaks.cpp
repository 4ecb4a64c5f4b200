// Trains a small net on the surface peaks(x, y) from C++, times it, and draws the surface, the net's and the error.
//   peaks --draw peaks.png --model peaks.safetensors      # 2,000 epochs on 200 x 200 points
//   peaks --seeds 5                                       # the final error from five starts
//   peaks --timing                                        # an epoch at 100, 1,000 and 40,000 points
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "lockstep/cli/plot/gnuplot.h"
#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/fit.h"
#include "lockstep/nn/safetensors.h"
#include "lockstep/train/initialise.h"
#include "lockstep/train/learning_rate.h"

namespace {

using namespace lockstep;

constexpr std::size_t kSide = 200;  // points along an axis of the whole grid, on [-3, 3]

struct Arguments {
  std::size_t points = kSide * kSide;
  std::int64_t epochs = 2000;
  double rate = 0.08;
  std::string schedule = "cosine";
  std::uint64_t seed = 0;
  int seeds = 1;
  int threads = 1;
  double at_most = 0;  // of the median; 0: whatever it is
  bool timing = false;
  std::string draw, model;
};

double peaks(double x, double y) {
  return 3 * (1 - x) * (1 - x) * std::exp(-x * x - (y + 1) * (y + 1)) -
         10 * (x / 5 - x * x * x - y * y * y * y * y) * std::exp(-x * x - y * y) -
         std::exp(-(x + 1) * (x + 1) - y * y) / 3;
}

// All points of the grid, or as many drawn from it.
struct Surface {
  std::vector<double> xy, z;

  explicit Surface(std::size_t points) {
    const Random random(0);
    for (std::size_t i = 0; i < points; ++i) {
      const bool whole = points == kSide * kSide;
      const auto at = whole ? i : static_cast<std::size_t>(random.uniform(i, 0) * kSide * kSide);
      const double step = 6.0 / (kSide - 1);
      xy.push_back(-3 + step * static_cast<double>(at % kSide));
      xy.push_back(-3 + step * static_cast<double>(at / kSide));
      z.push_back(peaks(xy[2 * i], xy[2 * i + 1]));
    }
  }
  nn::RegressionData data() const {
    return {MatrixView<const double>::row_major(xy.data(), z.size(), 2),
            MatrixView<const double>::row_major(z.data(), z.size(), 1)};
  }
};

nn::Model start(std::uint64_t seed) {
  Mlp mlp;
  const std::size_t widths[] = {2, 20, 5, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    DenseLayer layer{.inputs = widths[i], .outputs = widths[i + 1]};
    layer.weights.resize(layer.inputs * layer.outputs);
    layer.bias.resize(layer.outputs);
    if (i < 2) layer.activation = {ActivationKind::relu};
    mlp.layers.push_back(layer);
  }
  train::initialise(mlp, train::Initialisation::glorot_uniform, seed);
  nn::Model model = nn::Model::from_mlp(mlp);
  model.name = "peaks";
  model.inputs[0].features = {{"x", "", -3, 3}, {"y", "", -3, 3}};
  model.outputs[0].features = {{"z", ""}};
  return model;
}

nn::FitOptions options(const Arguments& arguments) {
  nn::FitOptions options;
  options.phases[0].iterations = arguments.epochs;
  train::LearningRateOptions& rate = options.phases[0].learning_rate;
  rate.rate = arguments.rate;
  rate.schedule = train::parse_schedule("--schedule", arguments.schedule);
  // Adam's first steps are of the whole rate whatever the gradient, and at 0.08 they switch some units off for good:
  // the rate grows over a tenth of the epochs before it falls.
  if (rate.schedule == train::Schedule::cosine)
    rate = {.schedule = rate.schedule, .rate = rate.rate, .warm_up = arguments.epochs / 10, .total = arguments.epochs};
  options.threads = arguments.threads;
  return options;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// What an epoch costs inside nn::fit: the best of some runs of 200.
void print_timing(Arguments arguments) {
  arguments.epochs = 200;
  std::printf("%8s %16s\n", "points", "us an epoch");
  for (const std::size_t points : {std::size_t{100}, std::size_t{1000}, kSide * kSide}) {
    const Surface surface(points);
    const auto time_of = [&](std::int64_t epochs) {
      double best = 1e30;
      for (int repeat = 0; repeat < 5; ++repeat) {
        nn::Model model = start(0);
        arguments.epochs = epochs;
        const auto begin = std::chrono::steady_clock::now();
        fit(model, surface.data(), options(arguments));
        best = std::min(best, seconds_since(begin));
      }
      return best;
    };
    // The difference leaves out what a fit does once.
    std::printf("%8zu %16.1f\n", points, (time_of(220) - time_of(20)) / 200 * 1e6);
  }
}

// Three wireframes of every fifth point: gnuplot wants rows of the grid apart by blank lines.
void draw_surfaces(const nn::Model& model, const std::string& path, double mse) {
  constexpr std::size_t kStride = 5;
  const auto plan = nn::compile<float>(model);
  std::string rows;
  for (std::size_t i = 0; i < kSide; i += kStride) {
    for (std::size_t j = 0; j < kSide; j += kStride) {
      const double x = -3 + 6.0 * static_cast<double>(j) / (kSide - 1);
      const double y = -3 + 6.0 * static_cast<double>(i) / (kSide - 1);
      const float in[2] = {static_cast<float>(x), static_cast<float>(y)};
      float out = 0;
      plan.evaluate(MatrixView<const float>::row_major(in, 1, 2), MatrixView<float>::row_major(&out, 1, 1));
      char line[128];
      std::snprintf(line, sizeof line, "%.4f %.4f %.5f %.5f %.5f\n", x, y, peaks(x, y), double(out),
                    double(out) - peaks(x, y));
      rows += line;
    }
    rows += '\n';
  }
  char error_title[80];
  std::snprintf(error_title, sizeof error_title, "net minus surface (mean square %.2g)", mse);
  const std::string script =
      "$surface << EOD\n" + rows +
      "EOD\n"
      "set multiplot layout 1,3\n"
      "set hidden3d\nset view 58,325,1.15,1.1\nset xyplane 0.05\nunset key\n"
      "set xtics -3,3 offset 0,-0.4 textcolor rgb '#555555'\n"
      "set ytics -3,3 offset 0.6,-0.2 textcolor rgb '#555555'\n"
      "set ztics textcolor rgb '#555555'\nset border 31 linecolor rgb '#aaaaaa' linewidth 0.6\n"
      "set xlabel 'x'\nset ylabel 'y'\nset zrange [-8:9]\n"
      "set title 'peaks(x, y)' offset 0,-1\n"
      "splot $surface using 1:2:3 with lines linewidth 0.9 linecolor rgb '#0072b2'\n"
      "set title 'net, 2-20-5-1 relu' offset 0,-1\n"
      "splot $surface using 1:2:4 with lines linewidth 0.9 linecolor rgb '#d55e00'\n"
      "set title " +
      cli::gnuplot_text(error_title) +
      " offset 0,-1\nsplot $surface using 1:2:5 with lines linewidth 0.9 linecolor rgb '#444444'\n"
      "unset multiplot\n";
  cli::draw(script, path, path.ends_with(".svg") ? cli::PictureFormat::svg : cli::PictureFormat::png, {2400, 800});
  std::printf("drew %s\n", path.c_str());
}

// False when the median is above what was asked.
bool train_and_show(const Arguments& arguments) {
  const Surface surface(arguments.points);
  std::vector<double> errors;
  for (int i = 0; i < arguments.seeds; ++i) {
    const std::uint64_t seed = arguments.seed + static_cast<std::uint64_t>(i);
    nn::Model model = start(seed);
    const auto begin = std::chrono::steady_clock::now();
    const nn::FitReport report =
        fit(model, surface.data(), options(arguments), {.progress = [&](const train::IterationReport& epoch) {
              if (arguments.seeds == 1 && epoch.place.total % 200 == 0) {
                std::printf("epoch %5lld   mean square error %-10.6g gradient %.3g\n",
                            static_cast<long long>(epoch.place.total), epoch.loss, epoch.gradient_norm);
              }
            }});
    const double seconds = seconds_since(begin);
    std::printf("seed %llu: mean square error %.6g after %lld epochs of %zu points in %.3f s\n",
                static_cast<unsigned long long>(seed), report.loss, static_cast<long long>(report.iterations),
                arguments.points, seconds);
    errors.push_back(report.loss);
    if (i > 0) continue;
    if (!arguments.model.empty()) nn::write_safetensors(arguments.model, model, Existing::replace);
    if (!arguments.draw.empty()) draw_surfaces(model, arguments.draw, report.loss);
  }
  std::sort(errors.begin(), errors.end());
  const double median = errors[errors.size() / 2];
  if (errors.size() > 1) std::printf("median of %zu seeds: %.6g\n", errors.size(), median);
  return arguments.at_most == 0 || median <= arguments.at_most;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Trains a 2-20-5-1 relu net on the surface peaks(x, y) by full-batch Adam");
  app.add_option("--points", arguments.points, "points of the surface: 40000 is the whole grid, fewer are drawn")
      ->check(CLI::Range(std::size_t{1}, kSide * kSide))
      ->capture_default_str();
  app.add_option("--epochs", arguments.epochs, "steps of Adam")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--rate", arguments.rate, "of Adam")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--schedule", arguments.schedule,
                 "of the rate: cosine grows over a tenth of the epochs, then falls to zero; constant is the other")
      ->check(CLI::IsMember({"cosine", "constant"}))
      ->capture_default_str();
  app.add_option("--seed", arguments.seed, "of the initial weights")->capture_default_str();
  app.add_option("--seeds", arguments.seeds, "starts, with seeds from --seed on")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--at-most", arguments.at_most, "exit code 1 where the seeds' median error is above");
  app.add_option("--threads", arguments.threads, "the result does not depend on it")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--draw", arguments.draw, "picture of surface, net and error (.png or .svg)");
  app.add_option("--model", arguments.model, "safetensors file for the trained net");
  app.add_flag("--timing", arguments.timing, "time epochs of 100, 1,000 and 40,000 points instead");
  CLI11_PARSE(app, argc, argv);
  try {
    if (arguments.timing) {
      print_timing(arguments);
    } else {
      if (!train_and_show(arguments)) {
        std::fprintf(stderr, "peaks: the median is above %g\n", arguments.at_most);
        return 1;
      }
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peaks: %s\n", error.what());
    return 1;
  }
}
