// What every plan of a graph asks of the views it is given.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/matrix_view.h"
#include "lockstep/kernels/graph/graph.h"

namespace lockstep::graph {

[[noreturn]] inline void refuse_argument(std::string field, std::size_t found, std::size_t expected,
                                         const char* remedy) {
  throw Error(ErrorKind::invalid_argument, {std::move(field), std::to_string(found), std::to_string(expected), remedy});
}

template <class View>
void require_ports(const char* which, std::span<const View> views, const std::vector<Port>& ports, std::size_t rows) {
  if (views.size() != ports.size()) {
    refuse_argument(std::string(which) + " views", views.size(), ports.size(),
                    "give one view for each port, in their order");
  }
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const auto field = [&](const char* part) { return std::string(which) + " \"" + ports[i].name + "\"." + part; };
    if (views[i].columns != ports[i].width) {
      refuse_argument(field("columns"), views[i].columns, ports[i].width, "give one column a feature of the port");
    }
    if (views[i].rows != rows) {
      refuse_argument(field("rows"), views[i].rows, rows, "give all ports the same number of samples");
    }
  }
}

// One view for each port, each of its width, all of one number of samples, which is returned. Throws Error
// (invalid_argument) naming the port.
template <class T>
std::size_t require_shapes(const std::vector<Port>& inputs, const std::vector<Port>& outputs,
                           std::span<const MatrixView<const T>> in, std::span<const MatrixView<T>> out) {
  const std::size_t rows = in.empty() ? 0 : in[0].rows;
  require_ports("in", in, inputs, rows);
  require_ports("out", out, outputs, rows);
  return rows;
}

}  // namespace lockstep::graph
