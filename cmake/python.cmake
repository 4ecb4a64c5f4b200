# What the Python package needs: Python's headers, NumPy and nanobind, all of one interpreter.
# scripts/python_environment.sh puts one into the build folder, which is looked at first.
include_guard()

set(LOCKSTEP_PYTHON AUTO CACHE STRING "Build the Python package: ON, OFF or AUTO (where Python's headers and nanobind are found)")
option(LOCKSTEP_WHEEL_TEST "Test that a wheel builds, installs and runs in a fresh environment (needs PyPI)" ON)
if(LOCKSTEP_PYTHON STREQUAL AUTO)
  set(lockstep_python_required QUIET)
else()
  set(lockstep_python_required REQUIRED)
endif()

set(LOCKSTEP_BUILD_PYTHON OFF)
# A sanitizer's runtime would have to be loaded before the interpreter.
if(LOCKSTEP_PYTHON AND LOCKSTEP_CLI AND NOT CMAKE_CROSSCOMPILING AND NOT LOCKSTEP_SANITIZE)
  set(lockstep_python ${PROJECT_BINARY_DIR}/python-environment/bin/python)
  if(NOT DEFINED Python_EXECUTABLE AND EXISTS ${lockstep_python})
    set(Python_EXECUTABLE ${lockstep_python})
  endif()
  find_package(Python 3.10 COMPONENTS Interpreter Development.Module ${lockstep_python_required})
  if(Python_Interpreter_FOUND AND Python_Development.Module_FOUND)
    execute_process(COMMAND ${Python_EXECUTABLE} -c "import numpy, nanobind; print(nanobind.cmake_dir())"
                    OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_ROOT ERROR_QUIET)
    find_package(nanobind CONFIG ${lockstep_python_required})
    set(LOCKSTEP_BUILD_PYTHON ${nanobind_FOUND})
  endif()
endif()
message(STATUS "Python package: ${LOCKSTEP_BUILD_PYTHON}")
