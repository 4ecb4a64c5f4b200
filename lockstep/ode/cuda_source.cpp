#include "lockstep/ode/cuda_source.h"

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"

namespace lockstep::ode {
namespace {

// With no function: of a GPU alone.
class SourceFunction : public StateFunction {
 public:
  enum class Kind { derivative, event };
  SourceFunction(Rhs function, Kind kind, std::string name, std::string text, std::size_t components,
                 std::size_t parameters)
      : kind_(kind),
        function_(std::move(function)),
        name_(std::move(name)),
        text_(std::move(text)),
        components_(components),
        parameters_(parameters) {}

  std::size_t components() const override { return components_; }
  std::size_t parameters() const override { return parameters_; }
  std::size_t outputs() const override { return kind_ == Kind::event ? 1 : components_; }
  std::string description() const override {
    return function_ ? function_->description() + " (and for a GPU)" : "source " + name_;
  }
  // The text is another form of the same mathematics.
  std::string digest() const override {
    return function_ ? function_->digest() : ContentHash().add("cuda_source").add(name_).add(text_).hex();
  }

  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override {
    return here().lower_f32(target);
  }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return here().lower_f64(target);
  }
  std::vector<double> weights() const override { return function_ ? function_->weights() : std::vector<double>(); }
  std::shared_ptr<DifferentiableTile<float>> differentiable_f32(CpuTarget target) const override {
    return here().differentiable_f32(target);
  }
  std::shared_ptr<DifferentiableTile<double>> differentiable_f64(CpuTarget target) const override {
    return here().differentiable_f64(target);
  }
  std::shared_ptr<DifferentiableTile<float>> directional_f32(CpuTarget target) const override {
    return here().directional_f32(target);
  }
  std::shared_ptr<DifferentiableTile<double>> directional_f64(CpuTarget target) const override {
    return here().directional_f64(target);
  }
  std::string inlined_name() const override { return function_ ? function_->inlined_name() : ""; }
  std::vector<FunctionPart> parts() const override {
    return {{SourcePart{name_, &text_, components_, parameters_, kind_ == Kind::event}, parameters_}};
  }

 private:
  const StateFunction& here() const {
    if (function_) return *function_;
    throw Error(ErrorKind::unsupported, {.field = "problem.rhs",
                                         .found = "source " + name_ + ", which was given for a GPU alone",
                                         .expected = "a function that was compiled for the CPU",
                                         .remedy = "use ode::with_cuda_source, or solve with device cuda"});
  }

  Kind kind_;
  Rhs function_;
  std::string name_, text_;
  std::size_t components_, parameters_;
};

void require_text(const std::string& name, const std::string& text) {
  if (text.find_first_not_of(" \t\n") != std::string::npos && name.find_first_of("\"\\\n") == std::string::npos) return;
  throw Error(ErrorKind::invalid_argument, {.field = "cuda_source",
                                            .found = text.empty() ? "an empty text" : "name \"" + name + "\"",
                                            .expected = "a name without quotes, and statements that set du, or return "
                                                        "an event's value",
                                            .remedy = ""});
}

}  // namespace

Rhs with_cuda_source(Rhs function, std::string name, std::string text) {
  require_text(name, text);
  if (!function || function->outputs() != function->components()) {
    throw Error(ErrorKind::invalid_argument, {.field = "cuda_source",
                                              .found = function ? "an event function" : "no function",
                                              .expected = "a right-hand side",
                                              .remedy = ""});
  }
  const std::size_t n = function->components(), m = function->parameters();
  return std::make_shared<SourceFunction>(std::move(function), SourceFunction::Kind::derivative, std::move(name),
                                          std::move(text), n, m);
}

Rhs with_cuda_event_source(Rhs function, std::string name, std::string text) {
  require_text(name, text);
  if (!function || function->outputs() != 1) {
    throw Error(
        ErrorKind::invalid_argument,
        {.field = "cuda_source",
         .found = function ? "a function of " + std::to_string(function->outputs()) + " outputs" : "no function",
         .expected = "an event function",
         .remedy = ""});
  }
  const std::size_t n = function->components(), m = function->parameters();
  return std::make_shared<SourceFunction>(std::move(function), SourceFunction::Kind::event, std::move(name),
                                          std::move(text), n, m);
}

Rhs cuda_source(std::string name, std::string text, std::size_t components, std::size_t parameters) {
  require_text(name, text);
  if (components == 0) {
    throw Error(ErrorKind::invalid_argument,
                {.field = "cuda_source.components", .found = "0", .expected = "at least 1", .remedy = ""});
  }
  return std::make_shared<SourceFunction>(nullptr, SourceFunction::Kind::derivative, std::move(name), std::move(text),
                                          components, parameters);
}

}  // namespace lockstep::ode
