// A trained net as Python sees it: an nn::Model and its plans, compiled when they are first called.
#pragma once

#include <nanobind/nanobind.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/cli/right_hand_side.h"
#include "lockstep/nn/derivative_model.h"
#include "lockstep/nn/device_net_plan.h"
#include "lockstep/nn/equations.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/net_derivatives.h"
#include "lockstep/nn/net_plan.h"

namespace lockstep::python {

// Immutable but for the plans, which are made while Python's lock is held.
class Net {
 public:
  explicit Net(nn::Model model) : model_(std::make_shared<const nn::Model>(std::move(model))) {}
  // Of equations, which their events and resets may name things of.
  Net(nn::Model model, nn::Equations written)
      : model_(std::make_shared<const nn::Model>(std::move(model))),
        written_(std::make_shared<const nn::Equations>(std::move(written))) {}

  const nn::Model& model() const { return *model_; }
  std::shared_ptr<const nn::Model> shared() const { return model_; }
  std::shared_ptr<const nn::Equations> written() const { return written_; }  // or none
  // As a right-hand side, for cli::ProblemFile.
  std::shared_ptr<cli::KeptNet> kept() const { return kept_; }

  // The net of an array, or of a dict of arrays by input port, in the arrays' precision: into `out`, which is returned,
  // or into new arrays. A dict by output port where there are several.
  nanobind::object call(nanobind::handle x, nanobind::handle out, int threads);

  // For jvp and vjp, made when first asked for.
  template <class T>
  const nn::NetDerivatives<T>& derivatives();
  // As a net, and the plan of a GPU; both made when first asked for.
  Net& derivative(nn::Derivative kind);
  template <class T>
  nn::DeviceNetPlan<T> device_plan(int device);

 private:
  template <class T>
  const nn::NetPlan<T>& plan();
  template <class T>
  nanobind::object evaluate(const class ArrayView& in, nanobind::handle x, nanobind::handle out, int threads);
  template <class T>
  std::vector<nanobind::object> evaluate_ports(std::span<const ArrayView* const> in, nanobind::handle out, int threads);
  nanobind::object with_defaults(nanobind::handle x) const;
  nanobind::object call_ports(nanobind::handle x, nanobind::handle out, int threads);

  std::shared_ptr<const nn::Model> model_;
  std::shared_ptr<const nn::Equations> written_;
  std::shared_ptr<cli::KeptNet> kept_ = std::make_shared<cli::KeptNet>();
  std::optional<nn::NetPlan<float>> plan_f32_;
  std::optional<nn::NetPlan<double>> plan_f64_;
  std::shared_ptr<class DevicePlans> device_plans_;
  std::optional<nn::NetDerivatives<float>> derivatives_f32_;
  std::optional<nn::NetDerivatives<double>> derivatives_f64_;
  std::map<nn::Derivative, Net> derivative_nets_;
};

void bind_model(nanobind::module_& module);

}  // namespace lockstep::python
