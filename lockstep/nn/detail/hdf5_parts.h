// What the two layouts of Lockstep's model files have in common: ports, lists of numbers, strictness about names.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/hdf5.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

// Throws Error (model) for members that are not known: a misspelt "biass" must not be passed over.
void check_members(const hdf5::Group& group, std::span<const std::string_view> datasets,
                   std::span<const std::string_view> groups);

// A list with one number for each `meaning`.
std::vector<double> read_vector(const hdf5::Group& group, const char* name, std::size_t expected, const char* meaning);
std::vector<double> read_vector_if_there(const hdf5::Group& group, const char* name, std::size_t expected);
std::vector<Feature> read_features(const hdf5::Group& group, std::size_t width);
std::string string_or_empty(const hdf5::Object& object, const char* attribute);

// Numbers as float32 where that is exact, else float64.
void write_vector(hdf5::Group& group, const std::string& name, const std::vector<double>& values,
                  const hdf5::Shape& shape);
void write_port(hdf5::Group& group, const Port& port);
void set_unless_empty(hdf5::Object& object, const std::string& attribute, const std::string& value);

}  // namespace lockstep::nn::detail
