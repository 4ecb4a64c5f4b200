#include "lockstep/ode/cuda/gemm/product.cuh"

namespace lockstep::ode::cuda {
namespace {

cudaDataType factor_type(const GemmProgram& program) {
  if (program.float64) return CUDA_R_64F;
  if (program.mode == MatrixPrecision::bf16) return CUDA_R_16BF;
  if (program.mode == MatrixPrecision::fp16) return CUDA_R_16F;
  return CUDA_R_32F;
}
cudaDataType number_type(const GemmProgram& program) { return program.float64 ? CUDA_R_64F : CUDA_R_32F; }

// Float32 means float32: TF32 is allowed where it was asked for by name, and nowhere else.
cublasComputeType_t compute_type(const GemmProgram& program) {
  if (program.float64) return CUBLAS_COMPUTE_64F;
  return program.mode == MatrixPrecision::tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

// Whether the product's results are factors of the next one, and have to be rounded to what its mode multiplies.
bool is_rounded(const GemmProgram& program, const DenseProduct& product) {
  return !product.last && program.mode != MatrixPrecision::f32;
}

// Bias and activation as cuBLASLt fuses them; default: not. Its GELU is the tanh form, and how exact its tanh is nobody
// says: good enough where factors have 8 to 11 bits. What is rounded afterwards is left to a kernel behind the product:
// cuBLASLt's tf32 is float32, of which a product cuts off what it does not multiply, and where results are 16 bits wide
// the bias would have to be, too (cublasLt.h, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: the output's type). Ours are float32
// in every mode, in the bound of a product and in the members of a certificate.
cublasLtEpilogue_t epilogue_for(const GemmProgram& program, const DenseProduct& product) {
  if (is_rounded(program, product)) return CUBLASLT_EPILOGUE_DEFAULT;
  switch (product.activation.kind) {
    case ActivationKind::identity:
      return CUBLASLT_EPILOGUE_BIAS;
    case ActivationKind::relu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case ActivationKind::gelu_tanh:
      return program.mode == MatrixPrecision::f32 ? CUBLASLT_EPILOGUE_DEFAULT : CUBLASLT_EPILOGUE_GELU_BIAS;
    default:
      return CUBLASLT_EPILOGUE_DEFAULT;
  }
}

}  // namespace

Product::Product(cublasLtHandle_t handle, const GemmProgram& program, const DenseProduct& product, std::int64_t columns,
                 std::int64_t pitch, Fault& fault)
    : handle_(handle), program_(program), product_(product), columns_(columns), pitch_(pitch) {
  program_.products.clear();
  const bool fused = epilogue_for(program, product) != CUBLASLT_EPILOGUE_DEFAULT;
  // From the most that cuBLASLt may do in one kernel to the least.
  if (fused && choose(Remainder::nothing, fault)) return;
  if (choose(Remainder::activation, fault)) return;
  if (choose(Remainder::bias_and_activation, fault)) return;
  if (fault.text.empty())
    fault.text = "no algorithm for a product of " + std::to_string(product.out_pitch) + " x " +
                 std::to_string(product.in_pitch) + " x " + std::to_string(columns);
  fault.happened = true;
  fault.where = "cuBLASLt " + cublaslt().version;
}

Product::~Product() { forget(); }

void Product::forget() {
  const CublasLt& lt = cublaslt();
  if (operation_ != nullptr) lt.destroy_operation(operation_);
  for (cublasLtMatrixLayout_t layout : {weights_, in_, out_layout_}) {
    if (layout != nullptr) lt.destroy_layout(layout);
  }
  operation_ = nullptr;
  weights_ = in_ = out_layout_ = nullptr;
}

// cuBLASLt counts in columns of memory: weights [output][input] are a matrix inputs x outputs to it, and so on. Biases
// are added along what is contiguous in the result, which is why results are [column][output].
bool Product::choose(Remainder remainder, Fault& fault) {
  forget();
  const CublasLt& lt = cublaslt();
  const cudaDataType factor = factor_type(program_), number = number_type(program_);
  const auto inputs = static_cast<std::uint64_t>(product_.in_pitch);
  const auto outputs = static_cast<std::uint64_t>(product_.out_pitch), columns = static_cast<std::uint64_t>(columns_);
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  const auto keep = [&](cublasStatus_t next) {
    if (status == CUBLAS_STATUS_SUCCESS) status = next;
  };
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    if (status == CUBLAS_STATUS_SUCCESS) keep(lt.set_operation(operation_, attribute, &value, sizeof value));
  };
  keep(lt.create_operation(&operation_, compute_type(program_), number));
  set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  if (product_.first) set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T);
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  if (remainder == Remainder::nothing) epilogue = epilogue_for(program_, product_);
  if (remainder == Remainder::activation) epilogue = CUBLASLT_EPILOGUE_BIAS;
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  if (epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, product_.bias);
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<std::int32_t>(number));
  }
  if (status == CUBLAS_STATUS_SUCCESS)
    keep(lt.create_layout(&weights_, factor, inputs, outputs, static_cast<std::int64_t>(inputs)));
  if (status == CUBLAS_STATUS_SUCCESS) {
    keep(product_.first ? lt.create_layout(&in_, factor, columns, inputs, pitch_)
                        : lt.create_layout(&in_, factor, inputs, columns, static_cast<std::int64_t>(inputs)));
  }
  if (status == CUBLAS_STATUS_SUCCESS)
    keep(lt.create_layout(&out_layout_, number, outputs, columns, static_cast<std::int64_t>(outputs)));
  cublasLtMatmulPreference_t preference = nullptr;
  if (status == CUBLAS_STATUS_SUCCESS) keep(lt.create_preference(&preference));
  if (status == CUBLAS_STATUS_SUCCESS) {
    keep(lt.set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &program_.workspace_bytes,
                           sizeof program_.workspace_bytes));
  }
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  if (status == CUBLAS_STATUS_SUCCESS) {
    keep(lt.find_algorithms(handle_, operation_, weights_, in_, out_layout_, out_layout_, preference, 1, &found,
                            &count));
  }
  if (preference != nullptr) lt.destroy_preference(preference);
  if (status == CUBLAS_STATUS_SUCCESS && count > 0 && found.state != CUBLAS_STATUS_SUCCESS) count = 0;
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) {
    if (status != CUBLAS_STATUS_SUCCESS && status != CUBLAS_STATUS_NOT_SUPPORTED) {
      fault.text = lt.status_text(status);
      fault.out_of_memory = status == CUBLAS_STATUS_ALLOC_FAILED;
    }
    return false;
  }
  fault = {};
  algorithm_ = found.algo;
  remainder_ = remainder;
  // A linear layer whose numbers need no rounding has nothing left to do with the bias in.
  const bool in_place = remainder != Remainder::bias_and_activation &&
                        product_.activation.kind == ActivationKind::identity && !is_rounded(program_, product_);
  if (in_place) remainder_ = Remainder::nothing;
  out_ = remainder_ == Remainder::nothing ? product_.out : program_.plain;
  return true;
}

cublasStatus_t Product::enqueue(cudaStream_t stream) const {
  const double one = 1, zero = 0;
  const float one_f32 = 1, zero_f32 = 0;
  const void* const alpha = program_.float64 ? static_cast<const void*>(&one) : &one_f32;
  const void* const beta = program_.float64 ? static_cast<const void*>(&zero) : &zero_f32;
  return cublaslt().matmul(handle_, operation_, alpha, product_.weights, weights_, product_.in, in_, beta, out_,
                           out_layout_, out_, out_layout_, &algorithm_, program_.workspace, program_.workspace_bytes,
                           stream);
}

}  // namespace lockstep::ode::cuda
