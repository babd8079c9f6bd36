# bin/fornax from tools/fornax/, bin/fornax-bench from bench/ and the program whose start-up it
# measures, one program per file of examples/ and per other file of tools/.

find_path(FORNAX_CLI11_INCLUDE CLI/CLI.hpp)
find_path(FORNAX_JSON_INCLUDE nlohmann/json.hpp)

# fornax_program(TARGET SOURCES…): nothing where there are no sources.
function(fornax_program target)
  if(NOT ARGN)
    return()
  endif()
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE fornax_options fornax_static fornax_third_party_headers)
endfunction()

file(GLOB cli_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tools/fornax/*.cpp"
     "${PROJECT_SOURCE_DIR}/tools/fornax*.cpp")
if(EXISTS "${PROJECT_SOURCE_DIR}/tools/fornax/main.cpp")
  fornax_program(fornax ${cli_sources})
endif()
file(GLOB bench_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/bench/*.cpp")
fornax_program(fornax-bench ${bench_sources})
# The inputs are the same bits everywhere: no fused multiply-add.
set_source_files_properties("${PROJECT_SOURCE_DIR}/bench/data.cpp" PROPERTIES COMPILE_OPTIONS
                                                                   -ffp-contract=off)
fornax_program(fornax-bench-startup "${PROJECT_SOURCE_DIR}/bench/startup/main.cpp")
add_dependencies(fornax-bench fornax-bench-startup)
if(FORNAX_BUILD_SHARED)
  add_dependencies(fornax-bench fornax_shared)
endif()

file(GLOB single_sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/examples/*.cpp"
     "${PROJECT_SOURCE_DIR}/tools/*.cpp")
list(FILTER single_sources EXCLUDE REGEX "/tools/fornax[^/]*\\.cpp$")
foreach(source IN LISTS single_sources)
  cmake_path(GET source STEM name)
  fornax_program(${name} ${source})
endforeach()
