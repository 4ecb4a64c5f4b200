// Numbers as Python code hands them to a solve, copied: lists, tuples, NumPy's arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::python {

struct Given {
  std::size_t dimensions = 0;
  std::size_t rows = 0, columns = 0;  // of one dimension: one row; of more than two: 0
  std::vector<double> values;
  std::vector<std::string> names;  // of the columns, where they have some

  bool shaped_like(const Given& other) const {
    return dimensions == other.dimensions && rows == other.rows && columns == other.columns && names == other.names;
  }
};

// Argument `name`, whatever NumPy can make an array of real numbers of. `numbers` is _table_or_numbers() of
// lockstep/_solve.py, which judges what is no list or tuple of floats and integers and no C-contiguous array of
// float64: numbers(name, given) returns an array of that kind, of a table whose columns have names the array and a list
// of them, or raises.
Given read_given(const char* name, nanobind::handle given, nanobind::handle numbers);

}  // namespace lockstep::python
