// What of a training file decides its numbers: as a digest, and option by option for people.
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/cli/training_file.h"
#include "lockstep/core/hash.h"
#include "lockstep/core/text.h"

namespace lockstep::cli {
namespace {

// Everything goes into the digest in the order of the calls, and under its key into a list.
class OptionList {
 public:
  void under(std::string section) { section_ = std::move(section); }

  OptionList& text(const std::string& key, std::string_view value) {
    hash_.add(value);
    return listed(key, std::string(value));
  }
  OptionList& number(const std::string& key, double value) {
    hash_.add(std::span<const double>(&value, 1));
    return listed(key, number_text(value));
  }
  // -1 stands for none.
  OptionList& number(const std::string& key, const std::optional<double>& value) {
    if (value) return number(key, *value);
    const double none = -1;
    hash_.add(std::span<const double>(&none, 1));
    return listed(key, "none");
  }
  template <class N>
  OptionList& count(const std::string& key, N value) {
    return text(key, std::to_string(value));
  }
  void numbers(const std::string& key, std::span<const double> values) {
    hash_.add(values);
    std::string all;
    for (const double each : values) all += (all.empty() ? "" : ", ") + number_text(each);
    listed(key, all);
  }

  std::string digest() const { return hash_.hex(); }
  std::string list() const { return list_; }

 private:
  OptionList& listed(const std::string& key, const std::string& value) {
    constexpr std::size_t kMost = 60;  // of a value: a formula may be long, and a list of numbers
    std::string line =
        section_ + key + " = " +
        (value.size() <= kMost ? value
                               : value.substr(0, kMost) + "... (" + ContentHash().add(value).hex().substr(0, 8) + ")");
    for (char& c : line) c = c == '\n' ? ' ' : c;
    list_ += line + '\n';
    return *this;
  }

  ContentHash hash_;
  std::string section_, list_;
};

void add_phase(const TrainingPhase& each, OptionList& to) {
  const train::Phase& phase = each.phase;
  to.count("iterations", phase.iterations).number("target", phase.target).count("patience", phase.patience);
  to.count("batch", each.batch).count("segment", each.segment).count("horizon", each.horizon);
  to.number("dt", each.dt);
  if (each.continuity) to.number("continuity", *each.continuity);
  if (const auto* lbfgs = std::get_if<train::LbfgsOptions>(&phase.rule)) {
    to.count("history", lbfgs->history);
    return;
  }
  const auto& rule = std::get<train::OptimiserOptions>(phase.rule);
  to.text("optimiser", to_string(rule.rule)).number("momentum", rule.momentum).number("beta1", rule.beta1);
  to.number("beta2", rule.beta2).number("epsilon", rule.epsilon).number("weight_decay", rule.weight_decay);
  const train::LearningRateOptions& rate = phase.learning_rate;
  to.text("schedule", to_string(rate.schedule)).number("rate", rate.rate);
  to.number("final_fraction", rate.final_fraction).number("factor", rate.factor);
  to.number("improvement", rate.improvement).number("floor", rate.floor).count("warm_up", rate.warm_up);
  to.count("total", rate.total).count("every", rate.every).count("rate_patience", rate.patience);
  to.number("clip_norm", phase.clip.norm).number("clip_value", phase.clip.value);
}

void add_trained(const std::vector<ode::TrainedParameter>& parameters, OptionList& to) {
  for (const ode::TrainedParameter& trained : parameters) {
    const std::string name = "trained parameter " + std::to_string(trained.parameter);
    to.count(name, trained.parameter).count(name + ", law", static_cast<int>(trained.law));
    to.number(name + ", scale", trained.scale);
    for (const auto& bound : {trained.min, trained.max}) {
      if (trained.law == ode::ParameterLaw::bounded) to.text(name + ", bound", bound ? number_text(*bound) : "");
    }
  }
}

void add_reset(const ResetSection& reset, OptionList& to) {
  if (reset.event.function) {
    to.text("reset where", reset.event.function->text);
  } else {
    const auto* name = std::get_if<std::string>(&reset.event.component);
    to.text("reset of", name != nullptr ? *name : std::to_string(std::get<std::size_t>(reset.event.component)));
    to.number("reset at", reset.event.value);
  }
  to.text("reset direction", to_string(reset.event.direction));
  for (const nn::Equation& each : reset.to) to.text("reset to", each.name).text("reset to " + each.name, each.text);
}

void add_ode(const TrainingFile& file, OptionList& to) {
  to.under("ode: ");
  to.text("system", file.ode->system ? file.ode->system->value : std::string());
  to.numbers("parameters", file.ode->parameters);
  to.count("with_time", static_cast<int>(file.ode->with_time));
  for (const nn::Equation& each : file.data.starts.of) {
    to.text("starts", "starts").text("starts", each.name).text("starts of " + each.name, each.text);
  }
  for (const SigmaSection::Of& each : file.data.sigma.named) {
    if (file.data.sigma.one_by_one()) break;  // then they are among the data
    to.text("sigma", "sigma").text("sigma", each.name).number("sigma of " + each.name, each.size);
  }
  for (const ResetSection& each : file.resets) add_reset(each, to);
  for (const KnownParameters::Of& each : file.data.parameters.of) to.text("parameters of trajectories", each.name);
  add_trained(file.ode->trained, to);
  if (const auto& equations = file.ode->equations) {
    for (const auto* texts : {&equations->system.equations, &equations->system.definitions}) {
      to.count("number of equations", texts->size());
      for (const nn::Equation& each : *texts) to.text("equation", each.name).text(each.name, each.text);
    }
    for (const auto& parameter : equations->system.parameters) {
      to.number("parameter " + parameter.name, parameter.value.value_or(0));
    }
    add_trained(equations->trained, to);
    for (const NetSection& net : file.nets) {
      if (net.called != NetSection().called) to.text("net", net.called);
    }
  }
  to.under("method: ");
  const ode::Options& options = file.options;
  to.text("version of lockstep", LOCKSTEP_VERSION);  // another version may take other steps
  to.text("name", options.method).count("control", static_cast<int>(options.control));
  to.number("rtol", options.rtol).number("atol", options.atol).number("dt", options.dt);
  to.number("initial_step", options.initial_step).number("max_step", options.max_step);
  for (const double x : options.stops) to.number("stops", x);
  to.count("stop_at_knots", static_cast<int>(options.stop_at_knots));
  for (const double x : options.component_atol) to.number("atol", x);
  to.count("max_steps", options.max_steps);
}

OptionList options_of(const TrainingFile& file) {
  OptionList to;
  to.count("loss", static_cast<int>(file.loss)).count("normalise", static_cast<int>(file.data.normalisation));
  if (file.loss == LossKind::mean_huber || file.loss == LossKind::huber)
    to.number("huber_threshold", file.huber_threshold);
  to.number("validation", file.data.validation).number("target", file.target);
  for (const Given<std::string>& each : file.data.held) to.text("validation", each.value);
  if (file.noisy) to.text("phases", "noisy");
  to.count("failed", static_cast<int>(file.failed)).count("seed", file.seed);
  for (std::size_t i = 0; i < file.phases.size(); ++i) {
    if (file.phases.size() > 1) to.under("phase " + std::to_string(i + 1) + ": ");
    add_phase(file.phases[i], to);
  }
  to.under("");
  to.count("with an ode", static_cast<int>(file.ode.has_value()));
  if (file.ode) add_ode(file, to);
  return to;
}

}  // namespace

std::string options_digest(const TrainingFile& file) { return options_of(file).digest(); }

std::string options_list(const TrainingFile& file) { return options_of(file).list(); }

void store_tolerances(const TrainingFile& file, std::map<std::string, std::string>& metadata) {
  const ode::Options& options = file.options;
  if (!file.ode || options.control == ode::StepControl::fixed) return;
  metadata["training_rtol"] = number_text(options.rtol);
  std::string& atol = metadata["training_atol"];
  atol = options.component_atol.empty() ? number_text(options.atol) : "";
  for (const double each : options.component_atol) atol += (atol.empty() ? "" : ", ") + number_text(each);
}

}  // namespace lockstep::cli
