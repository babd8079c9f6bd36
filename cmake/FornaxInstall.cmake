# Install rules and the package that find_package(fornax) finds: targets fornax::fornax (static) and
# fornax::fornax_shared. oneDNN and OpenBLAS are copied to lib/fornax, and everything installed
# finds them there by a path relative to itself, so the prefix may be moved.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(third_party_dir "${CMAKE_INSTALL_LIBDIR}/fornax")
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/fornax")

install(
  TARGETS ${fornax_libraries}
  EXPORT fornaxTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(FORNAX_BUILD_SHARED)
  set_target_properties(fornax_shared PROPERTIES INSTALL_RPATH "$ORIGIN/fornax")
endif()

foreach(program fornax fornax-bench)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../${third_party_dir}")
  endif()
endforeach()

install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/fornax"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING
  PATTERN "*.h"
  PATTERN "*.def"
  PATTERN "*.inc"
  PATTERN "kernels" EXCLUDE)

install(FILES "${FORNAX_DEPS}/lib/libdnnl.so.3" "${FORNAX_DEPS}/openblas/lib/libscipy_openblas.so"
        DESTINATION "${third_party_dir}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(
  DIRECTORY "${FORNAX_DEPS}/licenses"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}")

install(
  EXPORT fornaxTargets
  NAMESPACE fornax::
  DESTINATION "${package_dir}")
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/fornaxConfig.cmake.in" "${PROJECT_BINARY_DIR}/fornaxConfig.cmake"
  INSTALL_DESTINATION "${package_dir}"
  PATH_VARS third_party_dir)
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/fornaxConfigVersion.cmake"
  VERSION ${PROJECT_VERSION}
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/fornaxConfig.cmake"
              "${PROJECT_BINARY_DIR}/fornaxConfigVersion.cmake" DESTINATION "${package_dir}")
