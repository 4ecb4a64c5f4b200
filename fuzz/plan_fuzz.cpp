// Plan files. The first byte says whether the others are a whole file, or only what follows the checksum: then the
// header is made to fit, as a fuzzer does not guess checksums.
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"
#include "lockstep/core/hash.h"
#include "lockstep/nn/plan_file.h"

namespace {

constexpr std::size_t kHeader = 32, kBody = 64;  // as plan_file.cpp has them

std::vector<std::byte> with_header(std::span<const std::byte> body) {
  std::vector<std::byte> file(kBody);
  const char mark[] = "\x89LSPLAN\n";
  const std::uint32_t words[] = {lockstep::nn::kPlanFileVersion, 32, 1, 0};
  const std::uint64_t size = kBody + body.size();
  std::memcpy(file.data(), mark, 8);
  std::memcpy(file.data() + 8, words, sizeof words);
  std::memcpy(file.data() + 24, &size, sizeof size);
  file.insert(file.end(), body.begin(), body.end());
  lockstep::ContentHash hash;
  hash.add(std::span<const std::byte>(file).first(kHeader)).add(std::span<const std::byte>(file).subspan(kBody));
  std::memcpy(file.data() + kHeader, hash.hex().data(), kBody - kHeader);
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  if (size == 0) return 0;
  const auto rest = std::as_bytes(std::span(data + 1, size - 1));
  return fuzz::expect_result_or_error([&] {
    const nn::PlanFile plan =
        data[0] == 'f' ? nn::read_plan(rest, "net.plan") : nn::read_plan(with_header(rest), "net.plan");
    // What was read can be written, and is the same again.
    if (nn::read_plan(nn::plan_bytes(plan), "again").model.digest() != plan.model.digest()) std::abort();
  });
}
