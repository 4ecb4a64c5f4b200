// Models in Lockstep's own HDF5 layout.
#include "fuzz/damage_hdf5.h"
#include "fuzz/fuzz.h"
#include "lockstep/nn/hdf5_model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  return fuzz::expect_result_or_error([&] {
    nn::to_graph(nn::read_hdf5_model(fuzz::damaged(std::array{"peaks_model.h5", "small_model.h5"}, data, size)))
        .widths();
  });
}
