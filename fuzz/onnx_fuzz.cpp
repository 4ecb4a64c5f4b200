// Models in ONNX bytes: read as a stack or a graph, then numbered and written again; as ONNX they come back as they
// were.
#include <cstdlib>
#include <span>
#include <vector>

#include "fuzz/fuzz.h"
#include "lockstep/nn/onnx.h"
#include "lockstep/nn/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  return fuzz::expect_result_or_error([&] {
    const nn::Model model = nn::read_onnx(std::as_bytes(std::span(data, size)), "no-such-folder/bytes.onnx");
    nn::to_graph(model).widths();
    const std::vector<std::byte> written = nn::to_onnx(model, {Precision::f64});
    if (nn::read_onnx(written, "no-such-folder/written.onnx").digest() != model.digest()) std::abort();
    if (!nn::is_stack(model)) return;
    nn::to_safetensors(model);
  });
}
