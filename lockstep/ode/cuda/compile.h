// Kernels that came as text made into machine code, once: the user's cache keeps it.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "lockstep/ode/cuda/kernel_source.h"
#include "lockstep/ode/cuda/program.h"
#include "lockstep/ode/cuda/runtime.h"

namespace lockstep::ode::cuda {

// From the cache, where it holds the text with these headers, options, driver and architecture, else by NVRTC and then
// into the cache. A cache that cannot be written or is damaged only costs the time. Throws as Nvrtc::compile() does.
KernelImage compile_for(Runtime& runtime, int device, const KernelSource& source);

// Makes the kernel of a lowered problem known to a stream: its source's, or, where `special_is_worth_it` and that can
// be had, its special one's, which then becomes `kernel`. `image` keeps what was compiled for the next stream. Throws
// Error where there is no other way.
template <class T>
void add_source_kernel(Lowered<T>& lowered, bool special_is_worth_it, Runtime& runtime, int device, Stream& stream,
                       std::optional<KernelImage>& image);

// Why a problem whose kernel comes as text cannot run on these devices: NVRTC is not there, nor the code of an earlier
// solve. Opens NVRTC where the cache does not do.
std::optional<Obstacle> compiler_obstacle(const KernelSource& source, const std::vector<DeviceInfo>& devices);

// Where the cache keeps it: a file of the folder "kernels" beside calibration_path(); empty where there is no cache.
std::filesystem::path kept_kernel_path(const KernelSource& source, const DeviceInfo& device);
// Its machine code; empty where there is none, or it is damaged.
std::vector<char> read_kept_kernel(const std::filesystem::path& path);
// Does nothing where the file cannot be written.
void keep_kernel(const std::filesystem::path& path, const std::vector<char>& code);

}  // namespace lockstep::ode::cuda
