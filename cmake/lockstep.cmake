# The calls every room's CMakeLists.txt is made of.
include_guard()

# lockstep_library(NAME SOURCES ... [PUBLIC targets...] [PRIVATE targets...] [UNVERIFIED headers...])
# Makes lockstep_NAME, alias lockstep::NAME, from sources in the current folder, and installs it with its headers.
# Every *.h of the folder is public and must compile alone, but for NAME-inl.h and those in detail/: public
# headers may include them, so they are installed too. UNVERIFIED names public headers that cannot compile here.
# One that its own source includes first has compiled alone there: all_verify_interface_header_sets takes the others.
function(lockstep_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE;UNVERIFIED" ${ARGN})
  set(target lockstep_${name})
  add_library(${target} ${arg_SOURCES})
  add_library(lockstep::${name} ALIAS ${target})
  # Of shared libraries: each finds the others beside itself. Before 1.0 a minor version may change the interface.
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} INSTALL_RPATH "$ORIGIN" VERSION ${PROJECT_VERSION}
                                             SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  # The same bits everywhere: no compiler may contract a * b + c, here or in code that includes our headers.
  target_compile_options(${target} PUBLIC $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
  target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
  lockstep_warnings(${target})
  lockstep_keep_names_apart(${target})

  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  list(FILTER headers EXCLUDE REGEX "(_test|/test_[^/]*|/testing/[^/]*)\\.h$")
  set(inner_headers ${headers})
  list(FILTER headers EXCLUDE REGEX "(-inl\\.h$|/detail/)")
  list(FILTER inner_headers INCLUDE REGEX "(-inl\\.h$|/detail/)")
  foreach(header IN LISTS arg_UNVERIFIED)
    list(REMOVE_ITEM headers ${CMAKE_CURRENT_SOURCE_DIR}/${header})
    list(APPEND inner_headers ${CMAKE_CURRENT_SOURCE_DIR}/${header})
  endforeach()
  set(alone_headers)
  foreach(header IN LISTS headers)
    string(REGEX REPLACE "h$" "cpp" source ${header})
    if(EXISTS ${source})
      file(STRINGS ${source} first REGEX "^#include" LIMIT_COUNT 1)
      cmake_path(RELATIVE_PATH header BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE itself)
      if(first STREQUAL "#include \"${itself}\"")
        list(REMOVE_ITEM headers ${header})
        list(APPEND alone_headers ${header})
      endif()
    endif()
  endforeach()
  target_sources(${target} PUBLIC
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers}
    FILE_SET alone_headers TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${alone_headers}
    FILE_SET inner_headers TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${inner_headers})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON INTERFACE_HEADER_SETS_TO_VERIFY HEADERS)
  if(NOT PROJECT_IS_TOP_LEVEL)  # part of another project: its warnings are not about our headers
    set_target_properties(${target} PROPERTIES SYSTEM ON)
    # What lockstepConfig.cmake tells the CUDA sources of projects that find an installation.
    target_compile_options(${target} INTERFACE
                           "$<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;-Xcompiler=-ffp-contract=off>")
  endif()
  if(NOT LOCKSTEP_INSTALL)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)  # built where something links it
    return()
  endif()
  install(TARGETS ${target} EXPORT lockstep_${name}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
          FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILE_SET alone_headers DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
          FILE_SET inner_headers DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  set_property(GLOBAL APPEND PROPERTY LOCKSTEP_COMPONENTS ${name})
endfunction()

# lockstep_keep_names_apart(TARGET): GCC marks static members and inline variables of templates as unique in the
# whole process. The dynamic loader then merges those of two plug-ins, hidden or not, which may hold two versions of us, and
# never unloads a plug-in that has one.
function(lockstep_keep_names_apart target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>)
endfunction()

# lockstep_small(files...): compiled for size in release builds: what runs once a model, and would take up the C library's
# few megabytes. Not under the sanitizers, where an option of its own keeps a file from being compiled with others.
function(lockstep_small)
  if(NOT LOCKSTEP_SANITIZE)
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-Os>)
  endif()
endfunction()

# lockstep_together(NAME [HOT] [files...]): with LOCKSTEP_TOGETHER library NAME is compiled several files at a time, but for
# those named: they take long by themselves, or names of their own clash with another's. A HOT library, of kernels, only
# under the sanitizers: elsewhere each of its files is compiled as users do it.
function(lockstep_together name)
  cmake_parse_arguments(arg "HOT" "" "" ${ARGN})
  if(LOCKSTEP_TOGETHER AND (LOCKSTEP_SANITIZE OR NOT arg_HOT))
    set_target_properties(lockstep_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
    set_source_files_properties(${arg_UNPARSED_ARGUMENTS} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      target_compile_options(lockstep_${name} PRIVATE -Wno-subobject-linkage)  # of files taken for headers
    endif()
    if(NOT LOCKSTEP_SANITIZE)
      # So that the linker leaves out what a program does not call, as it leaves out files of which it calls nothing.
      target_compile_options(lockstep_${name} PRIVATE -ffunction-sections -fdata-sections)
    endif()
  endif()
endfunction()

# lockstep_link_formats(NAME libraries...): what library NAME reads and writes files with. A target with the property
# LOCKSTEP_NO_FORMATS, whose linker leaves out all of that, is linked without them: ld calls a library needed where any file
# refers to it, left out or not, and files compiled several at a time are taken together.
function(lockstep_link_formats name)
  foreach(library IN LISTS ARGN)
    target_link_libraries(lockstep_${name} PRIVATE
                          $<$<NOT:$<BOOL:$<TARGET_PROPERTY:LOCKSTEP_NO_FORMATS>>>:${library}>)
  endforeach()
endfunction()

# lockstep_casts_to_bytes(NAMES...): libraries whose only casts of pointers are to bytes, which are aligned anywhere. Under the
# sanitizers they are compiled without the check of alignment at every access, which costs a tenth of the compile time or more.
function(lockstep_casts_to_bytes)
  if(LOCKSTEP_SANITIZE)
    foreach(name IN LISTS ARGN)
      target_compile_options(lockstep_${name} PRIVATE -fno-sanitize=alignment)
    endforeach()
  endif()
endfunction()

# lockstep_test(NAME [LINK targets...] [LABELS labels...]): builds NAME.cpp of the current folder with GoogleTest and
# registers it. Labels:
#   computes  it computes much in code of its own, such as functions over dual numbers, and is optimised
#   slow      neither built with the others nor run under the sanitizers
#   memory    of what sanitizers look for first: texts and files from outside, memory of the caller's; with little
#             arithmetic, as scripts/test.sh builds these without optimisation
#   files     as `memory`, and nothing that optimisation could change: scripts/test.sh builds them under the sanitizers alone
function(lockstep_test name)
  cmake_parse_arguments(arg "" "" "LINK;LABELS;SOURCES" ${ARGN})
  lockstep_test_program(${name} SOURCES ${name}.cpp ${arg_SOURCES} LINK ${arg_LINK} LABELS ${arg_LABELS})
endfunction()

# lockstep_tests(NAME TESTS names... [LINK targets...] [LABELS labels...]): lockstep_test for each of the names. In a
# build from nothing (LOCKSTEP_TOGETHER) they are one program NAME, compiled as one file: their headers are read, and
# what they instantiate is compiled, once. Their unnamed namespaces must not clash; one that clashes gets a
# lockstep_test of its own.
function(lockstep_tests name)
  cmake_parse_arguments(arg "" "" "LINK;LABELS;TESTS" ${ARGN})
  if(LOCKSTEP_TESTS AND LOCKSTEP_TOGETHER)
    list(TRANSFORM arg_TESTS APPEND .cpp)
    lockstep_test_program(${name} SOURCES ${arg_TESTS} LINK ${arg_LINK} LABELS ${arg_LABELS})
    lockstep_test_together(${name})
    if(TEST ${name})
      set_tests_properties(${name} PROPERTIES COST 20)  # what takes long begins early
    endif()
  else()
    foreach(test IN LISTS arg_TESTS)
      lockstep_test(${test} LINK ${arg_LINK} LABELS ${arg_LABELS})
    endforeach()
  endif()
endfunction()

# lockstep_test_together(NAME [files...]): in a build from nothing the sources of test program NAME are compiled as one file, but
# for those named, whose unnamed namespaces clash with another's.
function(lockstep_test_together name)
  if(LOCKSTEP_TOGETHER AND TARGET ${name})
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()

# All programs of tests labelled `memory` or `files`, and what else those run.
if(LOCKSTEP_TESTS)
  add_custom_target(lockstep_memory_tests)
endif()

function(lockstep_test_program name)
  if(NOT LOCKSTEP_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "" "" "LINK;LABELS;SOURCES" ${ARGN})
  if("files" IN_LIST arg_LABELS AND NOT LOCKSTEP_FILE_TESTS)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE LOCKSTEP_TEST_DATA="${PROJECT_SOURCE_DIR}/testdata")
  lockstep_test_options(${name})
  if("computes" IN_LIST arg_LABELS)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  if("files" IN_LIST arg_LABELS OR "memory" IN_LIST arg_LABELS)
    add_dependencies(lockstep_memory_tests ${name})
  endif()
  if(LOCKSTEP_TOGETHER)
    lockstep_reuse_test_headers(${name})
  endif()
  if(LOCKSTEP_SANITIZE AND "slow" IN_LIST arg_LABELS)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set(timeout 600)
  if(LOCKSTEP_SANITIZE)
    set(timeout 1500)  # ode_tests has taken more than 600 s there, on a busy machine
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS "${arg_LABELS}")
endfunction()

# GoogleTest's headers, read once for all test programs. One whose flags differ too much for that reads them itself: GCC
# sees to that, Clang stops where one is optimised and the other is not.
function(lockstep_reuse_test_headers target)
  get_target_property(options ${target} COMPILE_OPTIONS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT LOCKSTEP_SANITIZE AND "$<$<CONFIG:Release>:-O1>" IN_LIST options)
    return()
  endif()
  if(NOT TARGET lockstep_test_headers)
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/test_headers.cpp CONTENT "")
    add_executable(lockstep_test_headers EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/test_headers.cpp)
    target_link_libraries(lockstep_test_headers PRIVATE lockstep::core GTest::gmock GTest::gtest_main)
    lockstep_test_options(lockstep_test_headers)
    target_precompile_headers(lockstep_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM lockstep_test_headers)
  set_target_properties(${target} PROPERTIES PCH_WARN_INVALID OFF)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -fpch-preprocess)  # so that ccache takes them (scripts/common.sh)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # Warnings inside the standard library's headers, false ones on std::string among them, are no longer held back.
    target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endfunction()

function(lockstep_test_options target)
  lockstep_warnings(${target})
  # Test programs take longer to compile than to run: leave optimisation, and the undefined-behaviour checks, which double
  # their compile time, to the libraries that they test. Kernels that run on the CPU have small stacks: some for those.
  if(CMAKE_CURRENT_SOURCE_DIR MATCHES "/cuda")
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  else()
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
  endif()
  if(LOCKSTEP_SANITIZE)
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  endif()
endfunction()

# lockstep_race_test(NAME SOURCES files... LINK targets... [TESTS filter]): kernels in the block simulator under
# ThreadSanitizer, where that is GCC's: Clang's, which knows 255 threads at a time as GCC's does since GCC 13, misses races in
# a block of 256 that it sees in one of 128 (tried: Clang 14.0.6). The simulator has a way round for GCC alone.
function(lockstep_race_test name)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fsanitize=thread)
  check_cxx_source_compiles("int main() { return 0; }" LOCKSTEP_HAS_THREAD_SANITIZER)
  if(NOT LOCKSTEP_TESTS OR NOT LOCKSTEP_HAS_THREAD_SANITIZER OR LOCKSTEP_SANITIZE OR CMAKE_CROSSCOMPILING)
    return()
  endif()
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    return()
  endif()
  cmake_parse_arguments(arg "" "TESTS" "LINK;SOURCES" ${ARGN})
  add_executable(${name} ${arg_SOURCES} ${PROJECT_SOURCE_DIR}/lockstep/kernels/cuda/testing/block_simulator.cpp)
  target_link_libraries(${name} PRIVATE ${arg_LINK} GTest::gmock GTest::gtest_main)
  lockstep_test_options(${name})
  target_compile_options(${name} PRIVATE -fsanitize=thread -g1)
  target_link_options(${name} PRIVATE -fsanitize=thread)
  add_test(NAME ${name} COMMAND ${name} --gtest_filter=${arg_TESTS})
  # Without lines, which take long to find where races are wanted: run it by hand for those of one that is not.
  # Where a kernel scatters addresses more widely than GCC 12's runtime knows, it says so before any test begins.
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 COST 30 ENVIRONMENT "TSAN_OPTIONS=halt_on_error=1 exitcode=66 symbolize=0"
                       SKIP_REGULAR_EXPRESSION "FATAL: ThreadSanitizer: unexpected memory mapping")
endfunction()

function(lockstep_warnings target)
  set(warnings -Wall -Wextra -Wpedantic -Wno-missing-field-initializers)
  if(NOT PROJECT_IS_TOP_LEVEL AND NOT LOCKSTEP_WERROR)
    set(warnings -w)  # part of another project, whose warnings, and -Werror, are for its own sources
  endif()
  if(LOCKSTEP_TOGETHER AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE --param=ggc-min-heapsize=700000)  # the compiler collects no garbage below, in kB
  endif()
  # Whatever the flags of a project that includes us. As one, or CMake would keep the first of what is repeated. sqrt and
  # fma may be inlined: nothing here reads errno or floating-point exception flags.
  set(in_order -fno-unsafe-math-optimizations)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)  # Clang takes it for a wish for exceptions, and warns of the last flag here
    set(in_order "-fno-associative-math -fno-reciprocal-math -fsigned-zeros")
  endif()
  target_compile_options(${target} PRIVATE ${warnings}
                                           "SHELL:-fno-fast-math ${in_order} -fno-finite-math-only \
-ffp-contract=off -fno-math-errno -fno-trapping-math"
                                           $<$<CONFIG:Release>:-O3> $<$<BOOL:${LOCKSTEP_WERROR}>:-Werror>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)  # false alarms on std::string, GCC bug 105651
  endif()
  if(LOCKSTEP_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${LOCKSTEP_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    # AddressSanitizer stops at null pointers and at those that left their object as well; these checks, at every access,
    # cost a fifth of the compile time.
    target_compile_options(${target} PRIVATE -fno-sanitize=null,object-size,vptr,pointer-overflow)
    target_link_options(${target} PUBLIC -fsanitize=${LOCKSTEP_SANITIZE})
  endif()
endfunction()
