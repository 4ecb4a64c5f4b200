// The ports of a plan as lockstep.h tells of them, and the caller's arrays for them.
#pragma once

#include <cstddef>
#include <string>

#include "bindings/c/handles.h"
#include "lockstep/core/matrix_view.h"
#include "lockstep/core/short_list.h"

namespace lockstep::c {

inline void require_index(std::size_t index, std::size_t count) {
  if (index < count) return;
  refuse("index", std::to_string(index), "less than " + std::to_string(count), "count from 0");
}

inline void require_direction(lockstep_direction direction) {
  if (direction == LOCKSTEP_INPUT || direction == LOCKSTEP_OUTPUT) return;
  refuse("direction", std::to_string(direction), "LOCKSTEP_INPUT or LOCKSTEP_OUTPUT", "");
}

// One of the two lists, by a direction that C programs and foreign calls can give as any number: none then.
template <class List>
std::size_t count_ports(lockstep_direction direction, const List& inputs, const List& outputs) {
  if (direction == LOCKSTEP_INPUT) return inputs.size();
  return direction == LOCKSTEP_OUTPUT ? outputs.size() : 0;
}

inline std::size_t index_of_port(lockstep_direction direction, const Ports& inputs, const Ports& outputs,
                                 const char* name) {
  require_direction(direction);
  require_pointer(name, "name");
  return nn::port_index((direction == LOCKSTEP_INPUT ? inputs : outputs).list, name);
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

// The caller's arrays as views, one for each port; none where there are no samples. Nets of more ports on a side than
// kFewPorts have them allocated by each call.
constexpr std::size_t kFewPorts = 64;
template <class T>
using Views = ShortList<MatrixView<T>, kFewPorts>;

template <class T, class Given>
Views<T> views_of(const Given* given, std::size_t count, const Ports& ports, std::size_t samples, const char* name,
                  bool optional = false) {
  if (count != ports.list.size()) {
    refuse(name, std::to_string(count) + (count == 1 ? " array" : " arrays"),
           std::to_string(ports.list.size()) + ", one for each port", "give them in the order of lockstep_plan_port");
  }
  Views<T> views;
  if (samples == 0) return views;
  require_pointer(given, name);
  for (std::size_t i = 0; i < count; ++i) {
    const lockstep_port& port = ports.list[i];
    if (!given[i].data && !optional) {
      refuse(std::string(name) + " \"" + port.name + "\".data", "a null pointer", "an address", "");
    }
    views.push_back({given[i].data, samples, port.features, given[i].sample_stride, given[i].feature_stride});
  }
  return views;
}

}  // namespace lockstep::c
