# Configures Lockstep with shared libraries and reads how they would be installed: each must find the others beside itself,
# and the tool must find them from its own folder. Nothing is compiled.
file(REMOVE_RECURSE ${BUILD})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${LOCKSTEP} -B ${BUILD} -G ${GENERATOR} -D BUILD_SHARED_LIBS=ON -D LOCKSTEP_TESTS=OFF
                        -D LOCKSTEP_CUDA=OFF -D LOCKSTEP_PYTHON=OFF -D LOCKSTEP_MPI=OFF -D CMAKE_INSTALL_LIBDIR=lib
                        -D CMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
                OUTPUT_QUIET ERROR_VARIABLE text RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${text}")
endif()

file(GLOB_RECURSE scripts ${BUILD}/lockstep/*cmake_install.cmake ${BUILD}/bindings/*cmake_install.cmake)
set(all)
foreach(script IN LISTS scripts)
  file(READ ${script} text)
  string(APPEND all "${text}")
endforeach()
function(require_path file path)
  string(REPLACE "." "\\." name "${file}")
  # The block of what is installed: it names the file, of newer CMake with its version alone, and then checks its path.
  string(REGEX MATCH "DESTDIR}[^\"\n]*/${name}(\\.[0-9]+)*\"" named "${all}")
  string(FIND "${all}" "${named}" at)
  string(SUBSTRING "${all}" ${at} -1 block)
  string(FIND "${block}" "\nif(CMAKE_INSTALL_COMPONENT" end)
  string(SUBSTRING "${block}" 0 ${end} block)
  string(REGEX MATCH "[ \n]RPATH \"([^\"]*)\"" found "${block}")
  if(NOT CMAKE_MATCH_1 STREQUAL "\\$ORIGIN${path}")
    message(FATAL_ERROR "${file} is installed with the path \"${CMAKE_MATCH_1}\", expected \"\$ORIGIN${path}\"")
  endif()
endfunction()
foreach(library core kernels train nn ode agreement c c_readers)
  require_path(liblockstep_${library}.so "")
endforeach()
require_path(lockstep "/../lib")

# What they use inside is no affair of who links them.
file(READ ${BUILD}/cmake/lockstepConfig.cmake config)
if(NOT config MATCHES "set\\(lockstep_is_shared \"ON\"\\)")
  message(FATAL_ERROR "lockstepConfig.cmake does not know that the libraries are shared")
endif()
