#include "bindings/python/errors.h"

#include <nanobind/stl/string.h>

#include <exception>

namespace nb = nanobind;

namespace lockstep::python {
namespace {

const char* kind_text(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_argument:
      return "invalid_argument";
    case ErrorKind::model:
      return "model";
    case ErrorKind::file:
      return "file";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::cancelled:
      return "cancelled";
  }
  return "invalid_argument";
}

// Names out of damaged files may be no UTF-8: what is none of it becomes U+FFFD.
nb::object text_of(const std::string& words) {
  return nb::steal(PyUnicode_DecodeUTF8(words.data(), static_cast<Py_ssize_t>(words.size()), "replace"));
}

nb::object exception_of_kind(const char* kind, const Error& error) {
  return nb::module_::import_("lockstep.errors")
      .attr("of_kind")(kind, text_of(error.what()), text_of(error.field()), text_of(error.found()),
                       text_of(error.expected()), text_of(error.remedy()));
}

void raise(const char* kind, const Error& error) {
  const nb::object exception = exception_of_kind(kind, error);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const WrongType& error) {
    raise("type", error);
  } catch (const Error& error) {
    raise(kind_text(error.kind()), error);
  }
}

}  // namespace

nb::object exception_of(const Error& error) { return exception_of_kind(kind_text(error.kind()), error); }

void raise_memory_error(const std::string& text) {
  PyErr_SetString(PyExc_MemoryError, text.c_str());
  throw nb::python_error();
}

void translate_errors() { nb::register_exception_translator(translate, nullptr); }

}  // namespace lockstep::python
