// The kernels for blocks that evaluate nets together, in the simulator of blocks.
#pragma once

#include <cstddef>
#include <string_view>

namespace lockstep::ode::cuda {

// False when no such kernel has that name. `trajectories` receives how many the launch was for.
bool run_tile_kernel(std::string_view name, const void* launch, std::size_t& trajectories);

}  // namespace lockstep::ode::cuda
