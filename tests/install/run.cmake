# cmake -DBUILD=<build dir> -DSOURCE=<project> -P run.cmake
#
# Installs the build to a prefix, moves the prefix, then configures, builds and runs an outside
# program against it, linked statically and dynamically, without any environment variable. Last, a
# project that takes the sources by add_subdirectory must configure.

cmake_minimum_required(VERSION 3.25)
set(work "${BUILD}/install_test")
file(REMOVE_RECURSE "${work}")
unset(ENV{LD_LIBRARY_PATH})

# step(COMMAND…): stops with the command's output when it fails; output in step_output.
function(step)
  execute_process(
    COMMAND ${ARGN}
    RESULT_VARIABLE result
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "failed (${result}): ${command}\n${output}")
  endif()
  set(step_output "${output}" PARENT_SCOPE)
endfunction()

step("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${work}/first")
file(RENAME "${work}/first" "${work}/prefix")

step("${CMAKE_COMMAND}" -G Ninja -S "${SOURCE}/tests/install/program" -B "${work}/program"
     "-DCMAKE_PREFIX_PATH=${work}/prefix" "-DCMAKE_CXX_COMPILER=${COMPILER}"
     -DCMAKE_BUILD_TYPE=Release)
step("${CMAKE_COMMAND}" --build "${work}/program")
foreach(program outside_static outside_shared)
  step("${work}/program/${program}")
  message(STATUS "${program}: ${step_output}")
endforeach()

if(EXISTS "${work}/prefix/bin/fornax")
  step("${work}/prefix/bin/fornax" info)
endif()

step("${CMAKE_COMMAND}" -G Ninja -S "${SOURCE}/tests/install/subdirectory" -B "${work}/subdirectory"
     "-DFORNAX_SOURCE=${SOURCE}" "-DFORNAX_DEPS=${DEPS}" "-DCMAKE_CXX_COMPILER=${COMPILER}")
file(REMOVE_RECURSE "${work}")
