# What kernels that come as text include, within the library; ${embedded_headers} is the source that holds it.
cmake_path(SET embedded_root NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../../..)
set(embedded
  core/ieee_arithmetic.h core/matrix_precision.h kernels/activation.h kernels/cuda/net_image.h kernels/cuda/thread_net.h kernels/lane/scalar_lane.h
  kernels/math/activation-inl.h kernels/math/atan-inl.h kernels/math/erf-inl.h kernels/math/exp-inl.h kernels/math/format.h
  kernels/math/log-inl.h kernels/math/logistic-inl.h kernels/math/logistic_derivative-inl.h kernels/math/math.h
  kernels/math/math_bodies-inl.h kernels/math/modulo-inl.h kernels/math/polynomial-inl.h kernels/math/pow-inl.h kernels/math/reduce_pi.h
  kernels/math/tanh-inl.h kernels/math/trig-inl.h
  kernels/cuda/block_net.cuh kernels/cuda/block_net.h kernels/cuda/device_words.cuh kernels/cuda/mma_words.cuh
  kernels/cuda/tensor_net.cuh kernels/cuda/tensor_net.h kernels/cuda/tensor_number.h kernels/cuda/unroll.h
  ode/cuda/block_advance.cuh ode/cuda/block_launch.h ode/cuda/block_trajectory.h ode/cuda/tensor_tile.cuh
  ode/cuda/gemm/column.h ode/cuda/gemm/column_memory.h ode/cuda/gemm/factor.h ode/cuda/gemm/gemm_launch.h
  ode/cuda/gemm/round.cuh ode/cuda/gemm/round_launch.h
  ode/cuda/advance.cuh ode/cuda/derivative.h ode/cuda/device_standard-inl.h ode/cuda/ensemble.h ode/cuda/kernel_body.h
  ode/cuda/launch.h ode/cuda/linear_system.h ode/cuda/reset_derivative.h ode/cuda/reset_trajectory.h ode/cuda/scheme.h ode/cuda/trajectory.h
  ode/detail/dual_lane-inl.h ode/detail/fixed_steps.h ode/detail/reset_side.h ode/detail/stop_times.h ode/detail/turn_search.h ode/event_direction.h
  ode/methods/bs3.h ode/methods/coefficients.h ode/methods/dop853.h ode/methods/dopri5.h ode/methods/euler.h
  ode/methods/heun.h ode/methods/midpoint.h ode/methods/rk4.h ode/methods/rkc8.h
  ode/methods/rkc20.h ode/methods/rodas5p.h ode/methods/tsit5.h ode/methods/vern7.h ode/methods/vern9.h
  ode/numerics-inl.h ode/numerics.h ode/trajectory_record.h)
file(GLOB systems RELATIVE ${embedded_root}/lockstep CONFIGURE_DEPENDS
     ${embedded_root}/lockstep/ode/systems/*-inl.h)
list(FILTER systems EXCLUDE REGEX hwy)
list(APPEND embedded ode/cuda/program_derivative.h ode/system_info.h ode/systems/systems.h ${systems})
list(TRANSFORM embedded PREPEND lockstep/)
list(TRANSFORM embedded PREPEND ${embedded_root}/ OUTPUT_VARIABLE embedded_files)
list(JOIN embedded " " embedded_names)
set(embedded_headers ${CMAKE_CURRENT_BINARY_DIR}/cuda/embedded_headers.cpp)
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/cuda)
add_custom_command(
  OUTPUT ${embedded_headers}
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${embedded_headers} -DROOT=${embedded_root}
          "-DHEADERS=${embedded_names}" -P ${embedded_root}/cmake/embed_headers.cmake
  DEPENDS ${embedded_files} ${embedded_root}/cmake/embed_headers.cmake VERBATIM)
