// Writing ONNX files.
#include <limits>
#include <new>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/nn/detail/refuse.h"
#include "lockstep/nn/onnx.h"
#ifdef LOCKSTEP_ONNX
#include "lockstep/nn/detail/onnx_kept.h"
#include "lockstep/nn/detail/onnx_writer.h"
#endif

namespace lockstep::nn {
namespace {

// Those that are trained, and in a model without any all others.
std::vector<const std::vector<double>*> deciding_numbers(const Model& model) {
  std::vector<const std::vector<double>*> trained, others;
  for (const Node& node : model.nodes) {
    if (const auto* dense = std::get_if<Dense>(&node.operation)) {
      trained.insert(trained.end(), {&dense->weights, &dense->bias});
    } else if (const auto* normalise = std::get_if<LayerNormalise>(&node.operation)) {
      trained.insert(trained.end(), {&normalise->scale, &normalise->shift});
    } else if (const auto* constant = std::get_if<Constant>(&node.operation)) {
      others.push_back(&constant->values);
    } else if (const auto* table = std::get_if<Interpolate>(&node.operation)) {
      others.insert(others.end(), {&table->knots, &table->coefficients});
    } else if (const auto* standardise = std::get_if<Standardise>(&node.operation)) {
      others.insert(others.end(), {&standardise->shift, &standardise->scale});
    } else if (const auto* rescale = std::get_if<Rescale>(&node.operation)) {
      others.insert(others.end(), {&rescale->scale, &rescale->shift});
    }
  }
  return trained.empty() ? others : trained;
}

}  // namespace

Precision onnx_precision(const Model& model) {
  for (const std::vector<double>* numbers : deciding_numbers(model)) {
    if (!detail::all_fit_float32(*numbers)) return Precision::f64;
  }
  return Precision::f32;
}

#ifdef LOCKSTEP_ONNX

std::vector<std::byte> to_onnx(const Model& model, const OnnxOptions& options) {
  const StandardArithmetic arithmetic;
  model.validate();
  onnx::ModelProto file;
  file.set_ir_version(detail::kWrittenIrVersion);
  file.set_producer_name("lockstep");
  file.set_producer_version(LOCKSTEP_VERSION);
  file.add_opset_import()->set_version(detail::kWrittenOpset);
  detail::OnnxWriter writer(model, options.precision.value_or(onnx_precision(model)));
  *file.mutable_graph() = writer.write();
  detail::keep_in_metadata(file, model, writer);
  const std::size_t size = file.ByteSizeLong();
  if (size > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw Error(ErrorKind::unsupported, {"model", std::to_string(size) + " bytes as ONNX",
                                         "at most 2 GiB, the limit of protobuf", "write it in float32, or as HDF5"});
  }
  std::vector<std::byte> bytes(size);
  if (!file.SerializeToArray(bytes.data(), static_cast<int>(size))) {
    throw std::bad_alloc();
  }
  return bytes;
}

#else

std::vector<std::byte> to_onnx(const Model&, const OnnxOptions&) {
  throw Error(ErrorKind::unsupported, {"ONNX", "a build without ONNX", "one with it",
                                       "build Lockstep with LOCKSTEP_ONNX=ON, or write the net as HDF5"});
}

#endif

void write_onnx(const std::filesystem::path& path, const Model& model, Existing existing, const OnnxOptions& options) {
  write_file(path, to_onnx(model, options), existing);
}

}  // namespace lockstep::nn
