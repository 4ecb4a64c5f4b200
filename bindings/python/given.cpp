#include "bindings/python/given.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <string>
#include <utility>

#include "bindings/python/ports.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

// A number of a list, where it is the same to Python, NumPy and C++.
bool read_number(PyObject* number, double& value) {
  if (PyFloat_Check(number)) {  // numpy.float64, too
    value = PyFloat_AS_DOUBLE(number);
    return true;
  }
  if (!PyLong_CheckExact(number)) return false;  // a bool is no number of anybody's
  constexpr long long kExact = 1LL << 53;
  int overflow = 0;
  const long long whole = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow != 0 || whole > kExact || whole < -kExact) return false;
  value = static_cast<double>(whole);
  return true;
}

std::optional<Given> read_sequence(PyObject* sequence) {
  const auto size = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(sequence));
  if (size == 0) return std::nullopt;
  Given given{1, 1, size, std::vector<double>(size), {}};
  for (std::size_t i = 0; i < size; ++i) {
    if (!read_number(PySequence_Fast_GET_ITEM(sequence, static_cast<Py_ssize_t>(i)), given.values[i])) {
      return std::nullopt;
    }
  }
  return given;
}

template <class Length>
Given shaped(std::size_t dimensions, const double* numbers, std::size_t count, const Length& length) {
  Given given{dimensions, dimensions == 1 ? 1U : 0U, 0, {numbers, numbers + count}, {}};
  if (dimensions == 2) given.rows = length(0);
  if (dimensions == 1 || dimensions == 2) given.columns = length(dimensions - 1);
  return given;
}

// A few numbers in a row come sooner as a list than by the buffer protocol, for which NumPy writes a description.
nb::object listed(nb::handle array) {
  constexpr Py_ssize_t kFew = 32;
  static PyObject *const dtype = PyUnicode_InternFromString("dtype"), *const ndim = PyUnicode_InternFromString("ndim"),
                         *const tolist = PyUnicode_InternFromString("tolist");
  if (!nb::getattr(array, dtype).is(numpy_float64()) || nb::cast<int>(nb::getattr(array, ndim)) != 1) return {};
  if (PyObject_Length(array.ptr()) > kFew) return {};
  PyObject* list = PyObject_CallMethodNoArgs(array.ptr(), tolist);
  if (list == nullptr) throw nb::python_error();
  return nb::steal(list);
}

std::optional<Given> read_buffer(PyObject* array) {
  Py_buffer buffer;
  if (PyObject_GetBuffer(array, &buffer, PyBUF_FULL_RO) != 0) {
    PyErr_Clear();  // a dtype without a buffer
    return std::nullopt;
  }
  std::optional<Given> given;
  if (buffer.ndim > 0 && std::strcmp(buffer.format, "d") == 0 && PyBuffer_IsContiguous(&buffer, 'C') != 0) {
    given = shaped(static_cast<std::size_t>(buffer.ndim), static_cast<const double*>(buffer.buf),
                   static_cast<std::size_t>(buffer.len) / sizeof(double),
                   [&](std::size_t dimension) { return static_cast<std::size_t>(buffer.shape[dimension]); });
  }
  PyBuffer_Release(&buffer);
  return given;
}

std::optional<Given> read_plain(nb::handle numbers) {
  PyObject* const object = numbers.ptr();
  if (PyList_CheckExact(object) || PyTuple_CheckExact(object)) return read_sequence(object);
  if (!is_plain_numpy(numbers)) return std::nullopt;  // a masked array, for one, is not what its buffer says
  const nb::object list = listed(numbers);
  return list.is_valid() ? read_sequence(list.ptr()) : read_buffer(object);
}

}  // namespace

Given read_given(const char* name, nb::handle given, nb::handle numbers) {
  if (std::optional<Given> plain = read_plain(given)) return *std::move(plain);
  nb::object read = numbers(name, given);
  std::vector<std::string> names;
  if (nb::isinstance<nb::tuple>(read)) {
    names = nb::cast<std::vector<std::string>>(read[1]);
    read = read[0];
  }
  const auto array = nb::cast<nb::ndarray<const double, nb::c_contig, nb::device::cpu>>(read);
  Given result =
      shaped(array.ndim(), array.data(), array.size(), [&](std::size_t dimension) { return array.shape(dimension); });
  result.names = std::move(names);
  return result;
}

}  // namespace lockstep::python
