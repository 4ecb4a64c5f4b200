# The CUDA component: built where nvcc is found (LOCKSTEP_CUDA=AUTO), never needed by anything else.
include_guard()
if(PROJECT_IS_TOP_LEVEL)
  set(LOCKSTEP_CUDA AUTO CACHE STRING "Build the CUDA component: AUTO (where nvcc is found), ON or OFF")
else()
  set(LOCKSTEP_CUDA OFF CACHE STRING "Build the CUDA component: AUTO (where nvcc is found), ON or OFF")
endif()
set_property(CACHE LOCKSTEP_CUDA PROPERTY STRINGS AUTO ON OFF)
set(LOCKSTEP_CUDA_ARCHITECTURES "80-real;90-real;100" CACHE STRING "Compute capabilities; the last one as PTX too")

set(LOCKSTEP_HAS_CUDA OFF)
# Sanitizers see the kernels' source where the tests run it on the host.
if(LOCKSTEP_CUDA STREQUAL "AUTO" AND (LOCKSTEP_SANITIZE OR CMAKE_CROSSCOMPILING))
  set(lockstep_wants_cuda OFF)
else()
  set(lockstep_wants_cuda ${LOCKSTEP_CUDA})
endif()
if(lockstep_wants_cuda)
  if(NOT CMAKE_CUDA_COMPILER)
    find_program(LOCKSTEP_NVCC nvcc HINTS /usr/local/cuda/bin)
    mark_as_advanced(LOCKSTEP_NVCC)
    if(LOCKSTEP_NVCC)
      set(CMAKE_CUDA_COMPILER ${LOCKSTEP_NVCC})
    endif()
  endif()
  if(CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_ARCHITECTURES ${LOCKSTEP_CUDA_ARCHITECTURES})
    enable_language(CUDA)
    # CMake 3.25 does not know how to ask nvcc for C++20, and drops the wish in silence.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    set(LOCKSTEP_HAS_CUDA ON)
  elseif(NOT lockstep_wants_cuda STREQUAL "AUTO")
    message(FATAL_ERROR "LOCKSTEP_CUDA=ON: no nvcc; set CMAKE_CUDA_COMPILER, or LOCKSTEP_CUDA=OFF")
  endif()
endif()
message(STATUS "CUDA component: ${LOCKSTEP_HAS_CUDA}")

# The same bits as on the host: no contraction, division and square root rounded correctly, denormal numbers kept.
set(LOCKSTEP_CUDA_FLAGS -std=c++20 -fmad=false -prec-div=true -prec-sqrt=true -ftz=false)
function(lockstep_cuda_options target)
  set_target_properties(${target} PROPERTIES CUDA_RUNTIME_LIBRARY Static CUDA_STANDARD 20
                                             CUDA_ARCHITECTURES "${LOCKSTEP_CUDA_ARCHITECTURES}")
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CUDA>:-fmad=false;-prec-div=true;-prec-sqrt=true;-ftz=false;-Xcompiler=-ffp-contract=off>"
    "$<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>"  # of machine code in the library
    "$<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${LOCKSTEP_WERROR}>>:-Werror=all-warnings>"
    "$<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off;-Wall;-Wextra>")
endfunction()
