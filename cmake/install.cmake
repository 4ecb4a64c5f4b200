# Installation: the package description that find_package(lockstep) and pkg-config read.
# Libraries and headers are installed by lockstep_library(), the tool by its own room.
include_guard()
include(CMakePackageConfigHelpers)

set(LOCKSTEP_INSTALL_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)
get_property(lockstep_components GLOBAL PROPERTY LOCKSTEP_COMPONENTS)
get_property(lockstep_shared_components GLOBAL PROPERTY LOCKSTEP_SHARED_COMPONENTS)  # bindings: they need no other
foreach(component IN LISTS lockstep_components lockstep_shared_components)
  install(EXPORT lockstep_${component} NAMESPACE lockstep:: DESTINATION ${LOCKSTEP_INSTALL_CMAKEDIR}
          FILE lockstep_${component}.cmake)
endforeach()
configure_package_config_file(cmake/lockstepConfig.cmake.in ${PROJECT_BINARY_DIR}/cmake/lockstepConfig.cmake
                              INSTALL_DESTINATION ${LOCKSTEP_INSTALL_CMAKEDIR}
                              NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/lockstepConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/lockstepConfig.cmake ${PROJECT_BINARY_DIR}/cmake/lockstepConfigVersion.cmake
        DESTINATION ${LOCKSTEP_INSTALL_CMAKEDIR})

set(lockstep_pc_libraries)
set(lockstep_pc_requires)
set(lockstep_pc_hdf5)
set(lockstep_pc_onnx)
if(LOCKSTEP_ONNX)
  string(APPEND lockstep_pc_requires " protobuf")
  set(lockstep_pc_onnx " -lonnx_proto")
endif()
if(LOCKSTEP_HDF5)
  string(APPEND lockstep_pc_requires " hdf5 zlib")
  set(lockstep_pc_hdf5 " -lhdf5_hl")
endif()
foreach(component IN LISTS lockstep_components)
  string(PREPEND lockstep_pc_libraries " -llockstep_${component}")
endforeach()
# pkg-config finds its own place (pcfiledir), so that the prefix may be moved.
file(RELATIVE_PATH lockstep_pc_prefix /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(cmake/lockstep.pc.in ${PROJECT_BINARY_DIR}/cmake/lockstep.pc @ONLY)
if("c" IN_LIST lockstep_shared_components)
  set(lockstep_pc_c_private)  # what liblockstep_c.a leaves to the host's linker
  if(TARGET lockstep_c_static)
    get_target_property(libraries lockstep_c_static INTERFACE_LINK_LIBRARIES)
    list(TRANSFORM libraries PREPEND " -l")
    string(JOIN "" lockstep_pc_c_private ${libraries})
    configure_file(cmake/lockstep_c_static.pc.in ${PROJECT_BINARY_DIR}/cmake/lockstep_c_static.pc @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/cmake/lockstep_c_static.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endif()
  configure_file(cmake/lockstep_c.pc.in ${PROJECT_BINARY_DIR}/cmake/lockstep_c.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/cmake/lockstep_c.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
if("fortran" IN_LIST lockstep_shared_components)
  configure_file(cmake/lockstep_fortran.pc.in ${PROJECT_BINARY_DIR}/cmake/lockstep_fortran.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/cmake/lockstep_fortran.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
install(FILES ${PROJECT_BINARY_DIR}/cmake/lockstep.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})
