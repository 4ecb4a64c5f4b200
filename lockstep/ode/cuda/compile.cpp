#include "lockstep/ode/cuda/compile.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>

#include "lockstep/core/hash.h"
#include "lockstep/core/pending_file.h"
#include "lockstep/ode/calibration.h"
#include "lockstep/ode/cuda/engine.h"
#include "lockstep/ode/cuda/nvrtc.h"

namespace lockstep::ode::cuda {
namespace {

// A cached file: this line with the code's digest, then the code.
constexpr std::string_view kMagic = "lockstep kernel 1 ";

int architecture_of(const DeviceInfo& device) { return 10 * device.major + device.minor; }

DeviceInfo device_info(Runtime& runtime, int device) {
  Fault fault;
  for (DeviceInfo& info : runtime.devices(fault)) {
    if (info.index == device) return std::move(info);
  }
  if (!fault.happened) fault = {true, false, "device " + std::to_string(device), "not on this machine"};
  refuse(fault, "name a device that nvidia-smi lists");
}

}  // namespace

std::filesystem::path kept_kernel_path(const KernelSource& source, const DeviceInfo& device) {
  const std::filesystem::path beside = calibration_path();
  if (beside.empty()) return {};
  ContentHash hash;
  hash.add(source.text).add(device.driver).add(std::to_string(architecture_of(device)));
  for (const std::string& option : nvrtc_options()) hash.add(option);
  for (const EmbeddedHeader& header : embedded_headers()) hash.add(header.name).add(header.text);
  return beside.parent_path() / "kernels" / (hash.hex() + ".cubin");
}

std::vector<char> read_kept_kernel(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (!std::getline(file, line) || !line.starts_with(kMagic)) return {};
  std::vector<char> code{std::istreambuf_iterator<char>(file), {}};
  if (line.substr(kMagic.size()) != content_digest(std::as_bytes(std::span(code)))) return {};
  return code;
}

void keep_kernel(const std::filesystem::path& path, const std::vector<char>& code) {
  std::error_code failure;
  std::filesystem::create_directories(path.parent_path(), failure);
  std::string content = std::string(kMagic) + content_digest(std::as_bytes(std::span(code))) + "\n";
  content.append(code.begin(), code.end());
  try {
    write_file(path, std::as_bytes(std::span(content)), Existing::replace);
  } catch (const Error&) {  // the next program compiles again
  }
}

KernelImage compile_for(Runtime& runtime, int device, const KernelSource& source) {
  const DeviceInfo info = device_info(runtime, device);
  KernelImage image{.code = {},
                    .entry = kSourceKernel,
                    .threads = source.threads,
                    .float64 = source.float64,
                    .shared_bytes = source.shared_bytes,
                    .threads_a_trajectory = source.threads_a_trajectory};
  const std::filesystem::path path = kept_kernel_path(source, info);
  if (!path.empty()) image.code = read_kept_kernel(path);
  if (!image.code.empty()) return image;
  image.code = load_nvrtc().compile(source, architecture_of(info));
  if (!path.empty()) keep_kernel(path, image.code);
  return image;
}

std::optional<Obstacle> compiler_obstacle(const KernelSource& source, const std::vector<DeviceInfo>& devices) {
  const bool kept = std::all_of(devices.begin(), devices.end(), [&](const DeviceInfo& device) {
    const std::filesystem::path path = kept_kernel_path(source, device);
    return !path.empty() && !read_kept_kernel(path).empty();
  });
  if (kept || load_nvrtc().missing.empty()) return std::nullopt;
  return Obstacle{"kernel " + source.name, "code to be compiled, without NVRTC",
                  "libnvrtc, with which such kernels are compiled: " + load_nvrtc().missing,
                  std::string(kNvrtcRemedy) + ", or run on the CPU with --device cpu"};
}

template <class T>
void add_source_kernel(Lowered<T>& lowered, bool special_is_worth_it, Runtime& runtime, int device, Stream& stream,
                       std::optional<KernelImage>& image) {
  if (lowered.source) {
    if (!image) image = compile_for(runtime, device, *lowered.source);
    if (const Fault fault = stream.add_kernel(lowered.kernel, *image); fault.happened)
      refuse(fault, "update the driver, or run on the CPU with --device cpu");
    return;
  }
  if (!lowered.special || !special_is_worth_it) return;
  try {
    if (!image) image = compile_for(runtime, device, *lowered.special);
  } catch (const Error&) {  // no compiler here: the general kernel serves
    lowered.special.reset();
    return;
  }
  if (stream.add_kernel(lowered.special->name, *image).happened) {
    lowered.special.reset();
  } else {
    lowered.kernel = lowered.special->name;
  }
}

template void add_source_kernel<float>(Lowered<float>&, bool, Runtime&, int, Stream&, std::optional<KernelImage>&);
template void add_source_kernel<double>(Lowered<double>&, bool, Runtime&, int, Stream&, std::optional<KernelImage>&);

}  // namespace lockstep::ode::cuda
