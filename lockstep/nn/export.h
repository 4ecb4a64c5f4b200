// A trained net as the source text of one header that needs nothing of Lockstep: for hosts that link no library, small
// machines, other languages, and kernels of the user's own on a GPU. The same bits as the library's.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep::nn {

enum class HeaderLanguage {
  c,     // C99 and C++: functions for one sample and for a batch with strides
  cuda,  // C++14 and CUDA: __host__ __device__ functions of one thread, and of a group of threads together
};
enum class WeightsIn {
  header,    // constants
  argument,  // a pointer to ExportedHeader::weights is each function's first argument
};

enum class HeaderNumbers {
  float_and_double,
  double_alone,  // where float does not tell numbers of the model apart, such as a table's knots in seconds since 1970
};

struct HeaderOptions {
  HeaderLanguage language = HeaderLanguage::c;
  WeightsIn weights_in = WeightsIn::header;
  HeaderNumbers numbers = HeaderNumbers::float_and_double;
  // Begins every name in the header, so that several headers live in one program. A C identifier.
  std::string name = "closure";

  void validate() const;  // throws Error (invalid_argument)
};

struct ExportedHeader {
  std::string text;
  // What the functions read, in the order they read it: weights, biases and scaling, float32 where that holds every
  // number of the net exactly, else float64. Bytes of the machine's own order. Empty where the header has them.
  std::vector<std::byte> weights;
  std::size_t weight_count = 0;
  bool single_weights = false;  // float32
};

// Functions for float and for double, with numbers rounded to each as Plan<T> rounds them, or for double alone. Throws
// Error (model) when the model is invalid or, of functions for float, a number does not fit in it or two knots of a
// table are one. Nets of several ports have a parameter for each.
ExportedHeader export_header(const Model& model, const HeaderOptions& options = {});

}  // namespace lockstep::nn
