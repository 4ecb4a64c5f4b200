// The derivative of a model as a model again: for whatever takes models, so that plans of the CPU and of a GPU, plan
// files, exported headers and ONNX files have derivatives as they have nets.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "lockstep/nn/model.h"

namespace lockstep::nn {

// Of a net with the input ports x and the output ports y, J the Jacobian of all outputs by all inputs:
enum class Derivative {
  jvp,       // of x, then x_dot: y, then y_dot = J x_dot
  vjp,       // of x, then y_bar: y, then x_bar = J^T y_bar
  jacobian,  // of x: y, then "jacobian", J by rows: [output][input], features of several ports one after another
};
std::string to_string(Derivative derivative);
std::optional<Derivative> parse_derivative(std::string_view text);

// Each port of x and y has one of the same width for its direction or cotangent, "NAME_dot" and "NAME_bar". Values of y
// have the bits of the model, derivatives those of NetDerivatives' products; at kinks kernels/graph/derivative.h says
// what they are. Those of `jacobian` are these products with unit vectors, from the side that is narrower (a zero's
// sign may be another), and each has a copy of the layers' weights. Names, units and training ranges of the given ports
// stay; calls of nets inside equations are no longer told apart.
//
// Throws Error (model) when the model is invalid or has a port of such a name already, (unsupported) when it holds
// derivatives itself or, of `jacobian`, when it would be larger than graph::jacobian_graph() makes one.
Model derivative_model(const Model& model, Derivative derivative);

}  // namespace lockstep::nn
