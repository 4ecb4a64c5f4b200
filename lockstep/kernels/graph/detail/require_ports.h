// What every plan of a graph asks of the views it is given.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/matrix_overlap.h"
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

template <class T>
void require_given(std::span<const MatrixView<const T>> in, const std::vector<Port>& inputs) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (lacks_address(in[i])) refuse_null("in \"" + inputs[i].name + '"');
  }
}

// At least one output: those with a null pointer are not wanted.
template <class T>
void require_wanted(std::span<const MatrixView<T>> out, const std::vector<Port>& outputs) {
  for (const MatrixView<T>& view : out) {
    if (!lacks_address(view)) [[likely]]
      return;
  }
  if (!out.empty()) refuse_null("out \"" + outputs[0].name + '"');
}

// Scratch that holds no number of any.
template <class T>
void require_apart_from(const Extent& workspace, const std::vector<Port>& inputs, const std::vector<Port>& outputs,
                        std::span<const MatrixView<const T>> in, std::span<const MatrixView<T>> out) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    lockstep::require_apart(workspace, in[i], [&] { return "in \"" + inputs[i].name + '"'; });
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    lockstep::require_apart(workspace, out[i], [&] { return "out \"" + outputs[i].name + '"'; });
  }
}

// Outputs whose elements have a place each, apart from all inputs, unless they are the same view, and from each other.
// Those with a null pointer are not written.
template <class T>
void require_apart(const std::vector<Port>& inputs, const std::vector<Port>& outputs,
                   std::span<const MatrixView<const T>> in, std::span<const MatrixView<T>> out) {
  const auto name = [](const char* which, const Port& port) { return std::string(which) + " \"" + port.name + '"'; };
  Extent met{UINTPTR_MAX, 0};  // around all arrays so far; most outputs lie beyond it
  const auto include = [&](const Extent& extent) {
    met = {std::min(met.begin, extent.begin), std::max(met.end, extent.end)};
  };
  const auto require_size = [&](const char* which, const Port& port, const auto& view) {
    if (size_bits(view) >> kLargeBit == 0) return;  // which extents can be counted
    if (!fits_memory(places_of(view))) refuse_size(name(which, port), places_of(view));
  };
  for (std::size_t i = 0; i < in.size(); ++i) {
    require_size("in", inputs[i], in[i]);
    include(extent_of(places_of(in[i])));
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i].data == nullptr) continue;
    const Places places = places_of(out[i]);
    require_size("out", outputs[i], out[i]);
    if (!has_own_places(out[i])) refuse_shared_places(name("out", outputs[i]), places);
    const Extent extent = extent_of(places);
    if (!are_apart(extent, met)) {
      for (std::size_t j = 0; j < in.size(); ++j) {
        if (may_write_beside(out[i], in[j])) continue;
        refuse_overlap(name("out", outputs[i]), places, name("in", inputs[j]), places_of(in[j]));
      }
      for (std::size_t j = 0; j < i; ++j) {
        if (out[j].data == nullptr || may_write_both(out[i], out[j])) continue;
        refuse_two_results(name("out", outputs[i]), places, name("out", outputs[j]), places_of(out[j]));
      }
    }
    include(extent);
  }
}

// One view for each port, each of its width, all of one number of samples, which is returned; outputs that lie apart.
// Throws Error (invalid_argument) naming the port.
template <class T>
std::size_t require_shapes(const std::vector<Port>& inputs, const std::vector<Port>& outputs,
                           std::span<const MatrixView<const T>> in, std::span<const MatrixView<T>> out) {
  const std::size_t rows = in.empty() ? 0 : in[0].rows;
  require_ports("in", in, inputs, rows);
  require_ports("out", out, outputs, rows);
  require_apart(inputs, outputs, in, out);
  return rows;
}

}  // namespace lockstep::graph
