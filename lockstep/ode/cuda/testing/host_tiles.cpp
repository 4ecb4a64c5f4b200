#include "lockstep/ode/cuda/testing/host_tiles.h"

#include "lockstep/ode/cuda/tensor_tile.cuh"
#include "lockstep/ode/cuda/testing/run_tiles.h"

namespace lockstep::ode::cuda {

bool run_tile_kernel(std::string_view name, const void* launch, std::size_t& trajectories) {
  using namespace lockstep::cuda;
  const auto run_if = [&]<class Tile>(std::string_view its_name) {
    if (name != its_name) return false;
    run_tiles_of<Tile>(launch, trajectories);
    return true;
  };
  return run_if.template operator()<FmaTile<float>>("tiles_f32") ||
         run_if.template operator()<FmaTile<double>>("tiles_f64") ||
         run_if.template operator()<TensorTile<Tf32>>("tiles_tf32") ||
         run_if.template operator()<TensorTile<Bf16>>("tiles_bf16") ||
         run_if.template operator()<TensorTile<Fp16>>("tiles_fp16");
}

}  // namespace lockstep::ode::cuda
