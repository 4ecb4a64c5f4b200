// Right-hand sides: a net, a built-in system, a user's function, or physics plus a net.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/kernels/graph/weights.h"
#include "lockstep/kernels/mlp/mlp.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/state_function.h"
#include "lockstep/ode/system_info.h"

namespace lockstep::ode {

// du/dt = net(u), net(u, p) or net(u, p, t): the net's outputs are the state's components; inputs beyond them are the
// trajectory's parameters in order, the last one time when `with_time`. Throws Error (invalid_argument) otherwise.
struct NetOptions {
  std::string name = "net";
  bool with_time = false;
  // Of a graph, what is trained: for each dense node where its weights begin among StateFunction::weights(). Nodes of
  // one place share them, their gradients add; graph::kKept keeps its own. Empty: each node's, one after another.
  graph::WeightPlaces weight_places = {};
};
Rhs net(Mlp mlp, NetOptions options = {});

// The same for a net that is no plain stack (nn::to_graph() makes it of a model), of one output port. Its input ports
// take, one after another, the state, the trajectory's parameters and, last, time when `with_time`; or, where there are
// several and the first is named as one of them, what their names say: "u" or "state", "p" or "parameters", "t" or
// "time", in any order. Its weights are graph::gather_weights() at `weight_places`. On a GPU small ones run as text
// that is compiled for them (docs/cuda.md).
Rhs net(graph::Graph graph, NetOptions options = {});

// A function of state, parameters and time with one output, such as an event, or with as many as the state has, such as
// Reset::state: input ports "u", then "p" and "t" where it reads them; `parameters` of a trajectory where it does not
// read them. `name` is its description and decides nothing. On a GPU it is compiled into the integrator, as net(graph)
// is. Throws Error (invalid_argument, model) for another graph.
Rhs graph_function(graph::Graph graph, std::size_t parameters, std::string name);

// A built-in system by name: see system_names(). Its parameters are each trajectory's, in the order of
// system_parameters(). Throws Error (invalid_argument) with the nearest known name.
Rhs system(std::string_view name);
std::vector<std::string_view> system_names();
const SystemInfo& system_info(std::string_view name);

// The sum of two right-hand sides over the same components: built-in physics plus a learned closure (a universal
// differential equation). Parameters are the first one's followed by the second one's.
Rhs sum(Rhs physics, Rhs closure);

}  // namespace lockstep::ode
