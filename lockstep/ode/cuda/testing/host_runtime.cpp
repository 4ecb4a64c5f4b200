#include "lockstep/ode/cuda/testing/host_runtime.h"

#include "lockstep/ode/cuda/kernel_list.h"

namespace lockstep::ode::cuda {

void run_listed_kernel(HostDevice& device, std::string_view wanted, const void* launch) {
  const auto visit = [&]<class Body>(std::string_view name) {
    if (name == wanted) run_body<Body>(device, name, launch);
  };
  for_each_kernel<float>(visit);
  for_each_kernel<double>(visit);
}

}  // namespace lockstep::ode::cuda
