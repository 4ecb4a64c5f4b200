// A derivative and events that come as text, in both their forms: what the CPU engine runs, and what a kernel compiled
// from the text would.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "lockstep/ode/cuda/program_derivative.h"
#include "lockstep/ode/cuda_source.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode::cuda {

// The files lie elsewhere where only this program was copied (scripts/gpu_check.sh).
inline std::string text_of(const std::string& name) {
  const char* const folder = std::getenv("LOCKSTEP_TEST_BODIES");
  std::ifstream file((folder != nullptr ? folder : LOCKSTEP_CUDA_TESTING) + std::string("/") + name);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_FALSE(text.empty()) << name;
  return text;
}

inline Rhs force() {
  return with_cuda_source(function<3, 2>("force",
                                         [](auto t, const auto& u, const auto& p, auto& du) {
#include "lockstep/ode/cuda/testing/force_body.inc"
                                         }),
                          "force", text_of("force_body.inc"));
}

inline TerminalEvent distance() {
  return {with_cuda_event_source(event_function<3, 2>("distance",
                                                      [](auto t, const auto& u, const auto& p) {
#include "lockstep/ode/cuda/testing/distance_body.inc"
                                                      }),
                                 "distance", text_of("distance_body.inc"))};
}

// The same as a graph, which brings a text of its own, and which is no number where u[2] < -1. Of the state alone it
// serves trajectories of any parameters.
inline TerminalEvent distance_of_graph(bool of_state = false, std::size_t parameters = 2) {
  graph::Graph graph;
  graph.inputs = {{"u", 0, 3}, {"p", 1, 2}, {"t", 2, 1}};
  using graph::Binary, graph::BinaryKind, graph::Columns, graph::Unary, graph::UnaryKind;
  graph.nodes = {{"squares", Binary{BinaryKind::multiply}, {0, 0}},
                 {"square", graph::Reduce{graph::ReduceKind::sum}, {3}},
                 {"root", Unary{UnaryKind::square_root}, {4}},
                 {"late", graph::Rescale{{2}, {0.3}}, {2}},
                 {"speed", Columns{{0}}, {1}},
                 {"behind", Binary{BinaryKind::multiply}, {7, 6}},
                 {"distance", Binary{BinaryKind::subtract}, {5, 8}},
                 {"z", Columns{{2}}, {0}},
                 {"above", graph::Rescale{{1}, {1}}, {10}},
                 {"log", Unary{UnaryKind::log}, {11}},
                 {"none", graph::Rescale{{0}, {1}}, {12}},
                 {"value", Binary{BinaryKind::multiply}, {9, 13}}};
  graph.outputs = {{"value", 14, 1}};
  if (of_state) {  // in place of parameters, which come first: value 1 is a constant of the same width
    graph.inputs = {{"u", 0, 3}};
    graph.nodes.insert(graph.nodes.begin(), {{"numbers", graph::Constant{{6, 0}}, {}}, {"t", Columns{{1}}, {1}}});
  }
  return {graph_function(graph, parameters, "how far")};
}
inline std::string text_of_graph(bool of_state) {
  const TerminalEvent event = distance_of_graph(of_state);
  const auto parts = event.function->parts();
  return *std::get<SourcePart>(parts.at(0).what).text;
}
inline std::string event_name(const TerminalEvent& event) { return ", event function " + event.function->digest(); }

// The texts as kernels hold them.
template <class T>
struct ForceInKernel {
  static void evaluate(double t, const T* u, const T* p, T* du) {
#include "lockstep/ode/cuda/testing/force_body.inc"
  }
};
template <class T>
struct EventInKernel {
  static T value(double t, const T* u, const T* p) {
#include "lockstep/ode/cuda/testing/distance_body.inc"
  }
};

template <class T>
struct GraphInKernel {
  static T value(double t, const T* u, const T* p) {
#include "lockstep/ode/cuda/testing/graph_event_body.inc"
  }
};
template <class T>
struct GraphOfStateInKernel {
  static T value(double, const T* u, const T*) {
#include "lockstep/ode/cuda/testing/graph_event_of_state_body.inc"
  }
};

template <class T>
struct ForceFirst {
  static constexpr bool kOwn = true;
  static void evaluate(int part, double t, const T* u, const T* p, T* du) {
    ASSERT_EQ(part, 0);
    ForceInKernel<T>::evaluate(t, u, p, du);
  }
};
template <class T>
struct ForceAfterLorenz {
  static constexpr bool kOwn = true;
  static void evaluate(int part, double t, const T* u, const T* p, T* du) {
    if (part == 0) systems::evaluate_at<systems::Lorenz, ScalarLane<T>>(static_cast<T>(t), u, p, du);
    if (part == 1) ForceInKernel<T>::evaluate(t, u, p, du);
  }
};

}  // namespace lockstep::ode::cuda
