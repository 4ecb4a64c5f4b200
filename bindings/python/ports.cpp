#include "bindings/python/ports.h"

#include <nanobind/stl/string.h>

#include <array>

#include "bindings/python/device.h"
#include "bindings/python/errors.h"
#include "lockstep/core/error.h"
#include "lockstep/core/names.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

// What a call needs of NumPy, looked up once. Never freed: modules may be gone before static objects are.
struct NumPy {
  PyObject* array_type;
  PyObject* empty;
  std::array<PyObject*, 2> types;  // by Precision
};
const NumPy& numpy() {
  static const NumPy found = [] {
    const nb::module_ module = nb::module_::import_("numpy");
    return NumPy{module.attr("ndarray").ptr(),
                 nb::object(module.attr("empty")).release().ptr(),
                 {nb::object(module.attr("dtype")(module.attr("float32"))).release().ptr(),
                  nb::object(module.attr("dtype")(module.attr("float64"))).release().ptr()}};
  }();
  return found;
}

}  // namespace

nb::object shape_of(std::span<const std::size_t> leading, std::initializer_list<std::size_t> rest) {
  const nb::object shape = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(leading.size() + rest.size())));
  if (!shape.is_valid()) throw nb::python_error();
  Py_ssize_t place = 0;
  for (const auto& numbers : {leading, std::span<const std::size_t>(rest)}) {
    for (const std::size_t number : numbers) {
      PyObject* const length = PyLong_FromSize_t(number);
      if (length == nullptr) throw nb::python_error();
      PyTuple_SET_ITEM(shape.ptr(), place++, length);
    }
  }
  return shape;
}

nb::object new_array(Precision precision, std::span<const std::size_t> leading, std::size_t columns) {
  const nb::object shape = leading.empty() ? nb::object(nb::int_(columns)) : shape_of(leading, {columns});
  std::array<PyObject*, 3> arguments{nullptr, shape.ptr(), numpy().types[precision == Precision::f32 ? 0 : 1]};
  PyObject* array =
      PyObject_Vectorcall(numpy().empty, arguments.data() + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  if (!array) throw nb::python_error();
  return nb::steal(array);
}

nb::handle numpy_float64() { return numpy().types[1]; }

[[noreturn]] void refuse_shape(const char* name, nb::handle object, const std::string& expected) {
  throw Error(ErrorKind::invalid_argument, {name, array_text(object), expected, {}});
}

bool is_numpy(nb::handle object) {
  return PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(numpy().array_type));
}

std::string names_text(const std::vector<nn::Port>& ports) {
  std::string text;
  for (const nn::Port& port : ports) text += (text.empty() ? "\"" : ", \"") + port.name + "\"";
  return text;
}

// What to do about a key that is no port's: if it can only be meant for one of those that have no array, that one.
std::string remedy_for(nb::handle key, nb::handle dict, const std::vector<nn::Port>& ports) {
  std::vector<std::string_view> missing;
  for (const nn::Port& port : ports) {
    if (!PyDict_GetItemString(dict.ptr(), port.name.c_str())) missing.push_back(port.name);
  }
  if (missing.empty()) return "leave it out";
  if (missing.size() == 1) return "call it \"" + std::string(missing.front()) + '"';
  const std::string nearest =
      PyUnicode_Check(key.ptr()) ? nearest_name(nb::cast<std::string>(key), missing) : std::string();
  return nearest.empty() ? "" : "did you mean \"" + nearest + "\"?";
}

// A dict with an entry for each port and no other.
void require_names(nb::handle dict, const std::vector<nn::Port>& ports, const char* name) {
  const std::string expected = "a dict of arrays by port: " + names_text(ports);
  if (!PyDict_Check(dict.ptr())) throw WrongType({name, array_text(dict), expected, {}});
  for (const auto& [key, value] : nb::cast<nb::dict>(dict)) {
    bool known = false;
    for (const nn::Port& port : ports) known = known || key.equal(nb::str(port.name.c_str()));
    if (!known) {
      throw Error(ErrorKind::invalid_argument,
                  {name, "key " + nb::cast<std::string>(nb::repr(key)), expected, remedy_for(key, dict, ports)});
    }
  }
}

nb::object entry(nb::handle dict, const std::string& port, const char* name) {
  PyObject* found = PyDict_GetItemString(dict.ptr(), port.c_str());
  if (!found) {
    throw Error(ErrorKind::invalid_argument, {name, "no key \"" + port + "\"", "an array for each port", {}});
  }
  return nb::borrow(found);
}

PortArrays read_ports(nb::handle given, const std::vector<nn::Port>& ports, const char* name, const char* of,
                      const ArrayView* like, Memory memory) {
  const bool named = PyDict_Check(given.ptr());
  if (!named && ports.size() != 1) {
    throw WrongType({name, array_text(given), std::string("a dict of arrays by ") + of + ": " + names_text(ports), {}});
  }
  if (named) require_names(given, ports, name);
  PortArrays arrays;
  for (const nn::Port& port : ports) {
    const std::string one = named ? std::string(name) + "[\"" + port.name + "\"]" : name;
    const nb::object object = named ? entry(given, port.name, name) : nb::borrow(given);
    const ArrayView* const beside = arrays.views.empty() ? like : arrays.views.front().get();
    arrays.views.push_back(std::make_unique<ArrayView>(object, Access::read, one.c_str(), memory, beside));
    const ArrayView& view = *arrays.views.back();
    if (port.features.size() != view.columns()) {
      refuse_shape(one.c_str(), object, std::to_string(port.features.size()) + " features in the last dimension");
    }
    const ArrayView& first = like ? *like : *arrays.views.front();
    if (view.precision() != first.precision() || !view.has_samples_of(first)) {
      refuse_shape(
          one.c_str(), object,
          like ? "the dtype and the number of samples of x" : "the dtype and the number of samples of the other ports");
    }
    if (!arrays.example.is_valid()) arrays.example = object;
  }
  return arrays;
}

// Throws unless `to` can hold `outputs` numbers for each sample of `in` and lies apart from it, or is it.
void require_room(const ArrayView& to, nb::handle object, const ArrayView& in, std::size_t outputs, const char* name) {
  if (to.precision() != in.precision()) {
    throw WrongType(
        {name,
         array_text(object),
         "the dtype of x, which is " + std::string(in.precision() == Precision::f32 ? "float32" : "float64"),
         {}});
  }
  if (!to.has_samples_of(in) || to.columns() != outputs) {
    refuse_shape(name, object, "shape " + nb::cast<std::string>(nb::repr(shape_of(in.leading(), {outputs}))));
  }
  if (to.overlaps(in) && !to.same_memory(in)) {
    throw Error(ErrorKind::invalid_argument,
                {name, "memory that overlaps x", "memory apart from x, or x itself", "give a copy of x"});
  }
}

PortResults take_results(std::span<const ArrayView* const> in, const std::vector<nn::Port>& ports, nb::handle out) {
  const ArrayView& first = *in.front();
  PortResults results;
  for (const nn::Port& port : ports) {
    const bool one = ports.size() == 1;
    const std::string name = one ? "out" : "out[\"" + port.name + "\"]";
    const std::size_t width = port.features.size();
    results.objects.push_back(!out.is_none()  ? (one ? nb::borrow(out) : entry(out, port.name, "out"))
                              : !first.cuda() ? new_array(first.precision(), first.leading(), width)
                                              : new_device_array(first, {width}));
    const nb::object& object = results.objects.back();
    results.views.push_back(
        std::make_unique<ArrayView>(object, Access::write, name.c_str(), Memory::host_or_cuda, &first));
    const ArrayView& view = *results.views.back();
    for (const ArrayView* array : in) require_room(view, object, *array, width, name.c_str());
    for (std::size_t i = 0; i + 1 < results.views.size(); ++i) {
      if (!results.views[i]->overlaps(view)) continue;
      throw Error(ErrorKind::invalid_argument, {name, "memory that overlaps another port's", "memory of its own", {}});
    }
  }
  return results;
}

nb::object like_example(const std::vector<nb::object>& results, const std::vector<nn::Port>& ports,
                        nb::handle example) {
  const bool convert = !is_numpy(example);
  const nb::object like = convert ? nb::module_::import_("lockstep._arrays").attr("like") : nb::none();
  const auto converted = [&](const nb::object& array) -> nb::object { return convert ? like(array, example) : array; };
  if (results.size() == 1) return converted(results.front());
  nb::dict named;
  for (std::size_t i = 0; i < results.size(); ++i) named[ports[i].name.c_str()] = converted(results[i]);
  return named;
}

}  // namespace lockstep::python
