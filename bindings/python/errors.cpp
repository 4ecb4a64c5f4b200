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

void raise(const char* kind, const Error& error) {
  const nb::object exception = nb::module_::import_("lockstep.errors")
                                   .attr("of_kind")(kind, error.what(), error.field().c_str(), error.found().c_str(),
                                                    error.expected().c_str(), error.remedy().c_str());
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

void translate_errors() { nb::register_exception_translator(translate, nullptr); }

}  // namespace lockstep::python
