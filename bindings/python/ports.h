// Arrays by port: a dict where a net has several, the array itself where it has one; and new arrays for results.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bindings/python/array_view.h"
#include "lockstep/core/precision.h"
#include "lockstep/nn/model.h"

namespace lockstep::python {

// Of NumPy: [leading ...][columns].
nanobind::object new_array(Precision precision, std::span<const std::size_t> leading, std::size_t columns);
// A tuple of these numbers and more behind them.
nanobind::object shape_of(std::span<const std::size_t> leading, std::initializer_list<std::size_t> rest);
bool is_numpy(nanobind::handle object);
nanobind::handle numpy_float64();  // its dtype

// "found float32 array of shape (3, 4), expected ..."
[[noreturn]] void refuse_shape(const char* name, nanobind::handle object, const std::string& expected);

// "x", "z", in quotes.
std::string names_text(const std::vector<nn::Port>& ports);
// Throws unless `dict` is a dict with no keys but the ports' names.
void require_names(nanobind::handle dict, const std::vector<nn::Port>& ports, const char* name);
nanobind::object entry(nanobind::handle dict, const std::string& port, const char* name);

// The arrays of all ports, read where they lie; all have one dtype and number of samples, which are the first one's.
struct PortArrays {
  std::vector<std::unique_ptr<ArrayView>> views;
  nanobind::object example;  // the first, for the framework that results should have
};
// `of` is what messages call a port of this kind: "input port". With `like`, dtype and samples must be those.
PortArrays read_ports(nanobind::handle given, const std::vector<nn::Port>& ports, const char* name, const char* of,
                      const ArrayView* like = nullptr, Memory memory = Memory::host);

// Arrays for the net's outputs, one for each port: of `out`, or new ones where it is None, which lie where the inputs
// do.
struct PortResults {
  std::vector<nanobind::object> objects;
  std::vector<std::unique_ptr<ArrayView>> views;
};
// Throws unless each can hold its port's numbers for the samples of `in` and lies apart from all others, or is an
// input.
PortResults take_results(std::span<const ArrayView* const> in, const std::vector<nn::Port>& ports,
                         nanobind::handle out);
// The same for one of them.
void require_room(const ArrayView& to, nanobind::handle object, const ArrayView& in, std::size_t outputs,
                  const char* name);

// Results, which are NumPy's or DeviceArrays, as arrays of the framework of `example`: one, or a dict by port.
nanobind::object like_example(const std::vector<nanobind::object>& results, const std::vector<nn::Port>& ports,
                              nanobind::handle example);

}  // namespace lockstep::python
