#include "lockstep/cli/training_file.h"

#include <gmock/gmock.h>

#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"

namespace lockstep::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kData = "[data]\nfile = \"t.csv\"\ninputs = [\"x\"]\ntargets = [\"y\"]\n";
const std::string kNet = "[net]\nhidden = [20, 5]\nactivation = \"relu\"\n";
const std::string kTraining = "[training]\noptimiser = \"adam\"\nrate = 0.08\niterations = 2000\n";

TrainingFile parse(const std::string& text) { return parse_training_file(text, "folder/train.toml"); }
std::string message_of(const std::string& text) {
  return lockstep::message_of([&] { parse(text); });
}

TEST(TrainingFile, a_regression_is_read) {
  const TrainingFile file = parse(kNet + kData + kTraining);
  EXPECT_FALSE(file.ode);
  EXPECT_EQ(file.data.file.value, "folder/t.csv");
  EXPECT_THAT(file.nets.at(0).hidden, ElementsAre(20u, 5u));
  EXPECT_EQ(file.nets.at(0).activations.size(), 3u);
  EXPECT_EQ(file.nets.at(0).activations.back().kind, ActivationKind::identity);
  ASSERT_EQ(file.phases.size(), 1u);
  EXPECT_EQ(file.phases[0].phase.iterations, 2000);
  EXPECT_EQ(file.phases[0].phase.learning_rate.rate, 0.08);
  EXPECT_EQ(file.loss, LossKind::mean_squared);
}

TEST(TrainingFile, activations_are_a_list_or_text_of_all_layers_or_the_hidden_ones) {
  const auto read = [](const std::string& activations) {
    return parse("[net]\nhidden = [20, 5]\nactivations = " + activations + "\n" + kData + kTraining)
        .nets.at(0)
        .activations;
  };
  const Activation relu{ActivationKind::relu}, none{ActivationKind::identity};
  for (const char* same : {"[\"relu\", \"relu\", \"linear\"]", "\"relu, relu,identity\"", "[\"relu\"]", "\"relu\""}) {
    EXPECT_THAT(read(same), ElementsAre(relu, relu, none)) << same;
  }
  EXPECT_THAT(
      lockstep::message_of([&] { read("\"relu,relu\""); }),
      HasSubstr("found \"relu,relu\", expected 3, one for each layer, the last too, or one for the hidden layers"));
  EXPECT_THAT(lockstep::message_of([&] { read("\"relu,rela,linear\""); }), HasSubstr("did you mean \"relu\"?"));
}

TEST(TrainingFile, phases_of_a_neural_ode_are_read) {
  const TrainingFile file = parse(
      "[net]\nhidden = [100]\n[data]\nfile = \"l.h5\"\n[ode]\n[method]\nname = \"bs3\"\n"
      "[[phase]]\nname = \"half\"\nhorizon = 50\nsegment = 5\nschedule = \"cosine\"\nfinal_fraction = 0.1\n"
      "[[phase]]\noptimiser = \"lbfgs\"\nhistory = 30\nstop_after = 7\ntarget = 92\nsegment = 8\ncontinuity = 10\n"
      "[[phase]]\nbatch = 16\n");
  ASSERT_TRUE(file.ode);
  EXPECT_EQ(file.options.method, "bs3");
  ASSERT_EQ(file.phases.size(), 3u);
  EXPECT_EQ(file.phases[2].batch, 16u);
  EXPECT_EQ(file.phases[0].horizon, 50u);
  EXPECT_EQ(file.phases[0].segment, 5u);
  EXPECT_EQ(file.phases[0].phase.learning_rate.total, 1000);
  EXPECT_TRUE(file.phases[1].phase.is_lbfgs());
  EXPECT_EQ(file.phases[1].phase.patience, 7);
  EXPECT_EQ(file.phases[1].phase.target, 92);
  EXPECT_FALSE(file.phases[0].continuity);
  EXPECT_EQ(file.phases[1].segment, 8u);
  EXPECT_EQ(file.phases[1].continuity, 10);
}

TEST(TrainingFile, recommended_phases_are_left_to_the_library) {
  const std::string ode = "[net]\nhidden = [100]\n[data]\nfile = \"l.h5\"\n[ode]\nfailed = \"leave_out\"\n";
  const TrainingFile file = parse(ode + "[training]\nphases = \"recommended\"\ntarget = 92\n");
  EXPECT_TRUE(file.phases.empty());
  EXPECT_EQ(file.target, 92);
  EXPECT_EQ(file.failed, ode::FailedTrajectories::leave_out);
  EXPECT_THAT(message_of(kNet + kData + "[training]\nphases = \"recommended\"\n"), HasSubstr("a neural ODE"));
  EXPECT_THAT(message_of(ode + "[training]\nloss = \"mean_squared\"\n"), HasSubstr("a loss for a neural ODE"));
}

TEST(TrainingFile, the_loss_of_trajectories_is_of_squares_or_hubers) {
  const std::string ode = "[net]\nhidden = [100]\n[data]\nfile = \"l.h5\"\n[ode]\n";
  const auto with = [&](const std::string& lines) { return parse(ode + "[training]\n" + lines); };
  EXPECT_EQ(with("loss = \"squared\"\n").loss, LossKind::mean_squared);
  const TrainingFile huber = with("loss = \"huber\"\nphases = \"noisy\"\ntarget = 2\n");
  EXPECT_EQ(huber.loss, LossKind::huber);
  EXPECT_EQ(huber.huber_threshold, 1.345);
  EXPECT_TRUE(huber.noisy);
  EXPECT_EQ(with("loss = \"huber\"\nhuber_threshold = 3\noptimiser = \"lbfgs\"\n").huber_threshold, 3);
  EXPECT_EQ(parse(ode + "[training]\nloss = \"huber\"\n[[phase]]\nrate = 0.1\n[[phase]]\n").loss, LossKind::huber);
  // A resumed training must not go on with another.
  EXPECT_NE(options_digest(huber), options_digest(with("phases = \"noisy\"\ntarget = 2\n")));
  EXPECT_NE(options_digest(huber),
            options_digest(with("loss = \"huber\"\nhuber_threshold = 2\nphases = \"noisy\"\ntarget = 2\n")));
  EXPECT_EQ(options_digest(with("loss = \"squared\"\n")), options_digest(with("optimiser = \"adam\"\n")));

  const auto message = [&](const std::string& lines) { return message_of(ode + "[training]\n" + lines); };
  EXPECT_THAT(
      message("loss = \"mean_huber\"\n"),
      HasSubstr("training.loss: found \"mean_huber\", a loss of regressions, expected a loss for a neural ODE, "
                "\"squared\" or \"huber\": a sum over points, averaged over trajectories; write loss = \"huber\""));
  EXPECT_THAT(message("loss = \"hubre\"\n"), HasSubstr("did you mean \"huber\"?"));
  EXPECT_THAT(message_of(kNet + kData + "[training]\nloss = \"huber\"\n"),
              HasSubstr("training.loss: found \"huber\", a loss of neural ODEs, expected a loss for a regression: "
                        "mean_squared, sum_squared, mean_absolute or mean_huber; write loss = \"mean_huber\""));
  EXPECT_THAT(
      message("huber_threshold = 2\n"),
      HasSubstr("training.huber_threshold: found huber_threshold without loss = \"huber\", expected that loss, of "
                "which it is; add loss = \"huber\", or remove this key"));
  for (const char* wrong : {"0", "-1", "0.0"}) {
    EXPECT_THAT(message("loss = \"huber\"\nhuber_threshold = " + std::string(wrong) + "\n"),
                HasSubstr("expected a number greater than 0"));
  }
  EXPECT_THAT(message("loss = \"huber\"\nphases = \"noisy\"\nrate = 0.1\n"),
              HasSubstr("expected target, loss and huber_threshold alone"));
}

TEST(TrainingFile, unknown_keys_and_names_are_told_the_nearest) {
  EXPECT_THAT(message_of(kNet + kData + "[training]\noptimizer = \"adam\"\n"),
              HasSubstr("did you mean \"optimiser\"?"));
  EXPECT_THAT(message_of(kNet + kData + "[training]\noptimiser = \"adm\"\n"), HasSubstr("did you mean \"adam\"?"));
  EXPECT_THAT(message_of(kNet + kData + "[training]\noptimiser = \"lbfg\"\n"), HasSubstr("did you mean \"lbfgs\"?"));
  EXPECT_THAT(message_of(kNet + kData + "[training]\nschedule = \"platau\"\n"), HasSubstr("\"plateau\""));
  EXPECT_THAT(message_of("[nett]\n" + kData + kTraining), HasSubstr("did you mean \"net\"?"));
  EXPECT_THAT(message_of("[net]\nhidden = [3]\nactivation = \"tanhh\"\n" + kData + kTraining),
              HasSubstr("did you mean \"tanh\"?"));
  EXPECT_THAT(message_of("[net]\nhidden = [3]\ninitialisation = \"he_unifrom\"\n" + kData + kTraining),
              HasSubstr("\"he_uniform\""));
}

TEST(TrainingFile, keys_that_would_be_passed_over_are_refused) {
  EXPECT_THAT(message_of(kNet + kData + kTraining + "every = 3\n"), HasSubstr("every with schedule = \"constant\""));
  EXPECT_THAT(message_of(kNet + kData + kTraining + "patience = 3\n"), HasSubstr("write stop_after to stop early"));
  EXPECT_THAT(message_of(kNet + kData + kTraining + "momentum = 0.5\n"),
              HasSubstr("momentum with optimiser = \"adam\""));
  EXPECT_THAT(message_of(kNet + kData + "[training]\noptimiser = \"lbfgs\"\nrate = 1\n"), HasSubstr("rate with"));
  EXPECT_THAT(message_of(kNet + kData + "[training]\noptimiser = \"lbfgs\"\nbatch = 10\n"), HasSubstr("all rows"));
  EXPECT_THAT(message_of(kNet + kData + kTraining + "horizon = 50\n"), HasSubstr("expected a neural ODE"));
  EXPECT_THAT(message_of(kNet + kData + kTraining + "continuity = 5\n"), HasSubstr("expected a neural ODE"));
  EXPECT_THAT(message_of(kNet + kData + kTraining + "[[phase]]\nrate = 1\n"), HasSubstr("an unknown key"));
  const std::string trajectories = "[data]\nfile = \"a.csv\"\ntime = \"t\"\nstates = [\"x\"]\n[ode]\n";
  EXPECT_THAT(
      message_of(kNet + trajectories + "[training]\nphases = \"noisy\"\niterations = 4\n"),
      HasSubstr("training.iterations: found a value beside phases = \"noisy\", which names its own, expected target, "
                "loss and huber_threshold alone; leave it away, or write all phases out"));
  EXPECT_THAT(message_of(kNet + trajectories + "[training]\nphases = \"noisy\"\niteration = 4\n"),
              HasSubstr("an unknown key"));
  EXPECT_THAT(message_of(kNet + kData + kTraining + "[event]\ncomponent = \"x\"\n"), HasSubstr("ode::EndLoss"));
  EXPECT_THAT(message_of(kNet + kData + kTraining + "[method]\nrtol = 1e-3\n"), HasSubstr("method.rtol"));
  EXPECT_THAT(message_of(kNet + kData + kTraining + "[run]\ndevice = \"cuda\"\n"),
              HasSubstr("train.toml:13: run.device: found cuda, expected \"cpu\""));
  EXPECT_THAT(message_of(kNet + kData + kTraining + "[run]\nengine = \"cuda_gemm\"\n"), HasSubstr("run.engine"));
  EXPECT_EQ(message_of(kNet + kData + kTraining + "[run]\ndevice = \"cpu\"\n"), "no error");
}

TEST(TrainingFile, values_that_cannot_be_name_file_line_and_key) {
  EXPECT_THAT(message_of(kNet + kData + "[training]\nrate = 0\n"), HasSubstr("train.toml:9: training.rate: found 0"));
  EXPECT_THAT(message_of(kNet + kData + "[training]\niterations = 0\n"), HasSubstr("training.iterations"));
  EXPECT_THAT(message_of(kNet + kData + kTraining + "clip_norm = 0\n"), HasSubstr(":12: training.clip_norm"));
  EXPECT_THAT(message_of("[net]\nhidden = [0]\n" + kData + kTraining), HasSubstr("net.hidden[0]"));
  EXPECT_THAT(message_of(kNet + kTraining), HasSubstr("no section [data]"));
  EXPECT_THAT(message_of(kNet + kData), HasSubstr("neither [training] nor [[phase]]"));
  EXPECT_THAT(message_of(kNet + "[data]\nfile = \"t.csv\"\n" + kTraining), HasSubstr("neither inputs and targets nor"));
  EXPECT_THAT(message_of(kNet + kData + "validation = 1.5\n" + kTraining), HasSubstr("data.validation"));
}

TEST(TrainingFile, the_digest_of_options_changes_with_what_decides_the_bits_alone) {
  const std::string base = options_digest(parse(kNet + kData + kTraining));
  EXPECT_THAT(options_list(parse(kNet + kData + kTraining + "beta1 = 0.8\n")), HasSubstr("\nbeta1 = 0.8\n"));
  EXPECT_EQ(options_digest(parse(kNet + kData + kTraining + "[run]\nthreads = 3\n[output]\nfile = \"a\"\n")), base);
  EXPECT_NE(options_digest(parse(kNet + kData + kTraining + "beta1 = 0.8\n")), base);
  EXPECT_NE(options_digest(parse(kNet + kData + kTraining + "batch = 16\n")), base);
  EXPECT_NE(options_digest(parse(kNet + kData + kTraining + "clip_norm = 1\n")), base);
  EXPECT_NE(options_digest(parse(kNet + "seed = 2\n" + kData + kTraining)), base);  // shuffles otherwise
}

}  // namespace
}  // namespace lockstep::cli
