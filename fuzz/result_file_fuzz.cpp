// Result files: every part that the reader offers, of the first trajectories.
#include <algorithm>

#include "fuzz/damage_hdf5.h"
#include "fuzz/fuzz.h"
#include "lockstep/ode/result_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  return fuzz::expect_result_or_error([&] {
    const ode::ResultFile file(fuzz::damaged(
        std::array{"small_result.h5", "times_differ_result.h5", "impulses_result.h5", "events_result.h5"}, data, size));
    const std::size_t count = std::min<std::size_t>(file.trajectories(), 3);
    file.states<float>(0, count);
    file.end_states<double>(0, count);
    file.initial_states(0, count);
    file.records(0, count);
    file.impulses(0, count);
    file.events(0, count);
    if (count > 0) {
      file.times(count - 1);
      file.parameters(count - 1);
    }
    for (const std::string& name : file.attribute_names()) file.attribute(name);
  });
}
