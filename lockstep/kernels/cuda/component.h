// The CUDA component (liblockstep_cuda.so), looked for when something first asks: nothing of CUDA is linked or loaded
// before.
#pragma once

#include <string>

namespace lockstep::cuda {

struct Component {
  void* library = nullptr;  // of dlopen; null: see `missing`
  std::string missing;      // what is not there, for people
};

// Opened once: the file that the environment variable LOCKSTEP_CUDA_LIBRARY names, else beside the program, in ../lib
// from there, beside the library that holds this function, and where the loader looks.
const Component& component();

// The component's function of that name; null where there is none.
void* component_entry(const char* name);

}  // namespace lockstep::cuda
