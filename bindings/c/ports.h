// The ports of a plan as lockstep.h tells of them, and the caller's arrays for them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "bindings/c/handles.h"
#include "lockstep/core/matrix_view.h"

namespace lockstep::c {

inline void require_index(std::size_t index, std::size_t count) {
  if (index < count) return;
  refuse("index", std::to_string(index), "less than " + std::to_string(count), "count from 0");
}

inline void require_direction(lockstep_direction direction) {
  if (direction == LOCKSTEP_INPUT || direction == LOCKSTEP_OUTPUT) return;
  refuse("direction", std::to_string(direction), "LOCKSTEP_INPUT or LOCKSTEP_OUTPUT", "");
}

template <class List>
Ports ports_of_plan(const List& list) {
  Ports ports;
  for (const auto& port : list) {
    ports.list.push_back({port.name.c_str(), port.width, ports.features});
    ports.features += port.width;
  }
  return ports;
}

// The caller's arrays as views, one for each port; kept by the thread, so that nothing is allocated from call to call.
template <class T, int kPlace, class Given>
std::span<const MatrixView<T>> views_of(const Given* given, std::size_t count, const Ports& ports, std::size_t samples,
                                        const char* name, bool optional = false) {
  if (count != ports.list.size()) {
    refuse(name, std::to_string(count) + (count == 1 ? " array" : " arrays"),
           std::to_string(ports.list.size()) + ", one for each port", "give them in the order of lockstep_plan_port");
  }
  require_pointer(given, name);
  thread_local std::vector<MatrixView<T>> views;
  views.clear();
  for (std::size_t i = 0; i < count; ++i) {
    const lockstep_port& port = ports.list[i];
    if (samples > 0 && !given[i].data && !optional) {
      refuse(std::string(name) + " \"" + port.name + "\".data", "a null pointer", "an address", "");
    }
    views.push_back({given[i].data, samples, port.features, given[i].sample_stride, given[i].feature_stride});
  }
  return views;
}

}  // namespace lockstep::c
