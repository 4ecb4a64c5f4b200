// The arguments of a solve in Python: sections of a problem file as text, and arrays and a model in their places.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <vector>

#include "bindings/python/given.h"
#include "bindings/python/model.h"
#include "lockstep/cli/problem_file.h"
#include "lockstep/cli/problem_setup.h"

namespace lockstep::python {

// A column of an argument that is a dict by name, [trajectory]: the text has one number in its place.
struct GivenColumn {
  std::string of, name;  // "parameters", "rho"
  std::vector<double> values;
};

// The arguments that are numbers.
struct Arguments {
  std::optional<Given> u0, parameters, t_span, save_at;
  std::optional<Given> impulses;     // as read_impulses() takes them
  std::vector<GivenColumn> columns;  // of u0, parameters and t_span
};
// `given` has those of them that are given, columns as "parameters.rho"; `numbers` as read_given() takes it.
Arguments read_arguments(const nanobind::dict& given, nanobind::handle numbers);

// What lockstep/_solve.py writes, read: in loops the same text comes again and again. Python's lock is held.
cli::ProblemFile parse_arguments(const std::string& text);

// As the right-hand side, with what is kept of it; none: as the file has it.
void take_model(const Net* model, cli::ProblemFile& file);

// The problem of a file, which holds what is no array, with these in their places: from then on it is the arguments'
// file. Throws Error in the words of the file.
cli::ProblemSetup set_up_arguments(cli::ProblemFile& file, Arguments arguments);

}  // namespace lockstep::python
