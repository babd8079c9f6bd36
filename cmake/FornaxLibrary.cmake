# libfornax.a and libfornax.so, out of one object library per folder of fornax/.

# Folders whose sources may include third-party headers.
set(third_party_folders backends/cpu serialize data)
set(fornax_folders
    base expr device core ops autograd backends/cpu transforms graph nn optim serialize compile
    data)

# Kernel sources are compiled once per instruction set; the set is chosen when the program starts.
# The flags keep results equal between the sets: no contraction, wrapping integers.
set(kernel_flags -ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv -fopenmp-simd
                 -fno-exceptions)
if(CMAKE_BUILD_TYPE MATCHES "^(Debug|Dev)$")
  list(APPEND kernel_flags -O1)
else()
  list(APPEND kernel_flags -O3)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(kernel_sets v3 v4)
  set(kernel_march_v3 -march=x86-64-v3)
  # GCC's tuning for v4 would use half of each register.
  set(kernel_march_v4 -march=x86-64-v4 -mprefer-vector-width=512)
else()
  set(kernel_sets neon)
  set(kernel_march_neon "")
endif()

add_library(fornax_static STATIC)
add_library(fornax::fornax ALIAS fornax_static)
set(fornax_libraries fornax_static)
if(FORNAX_BUILD_SHARED)
  add_library(fornax_shared SHARED)
  add_library(fornax::fornax_shared ALIAS fornax_shared)
  target_link_options(fornax_shared PRIVATE -Wl,-Bsymbolic -Wl,--no-undefined)
  list(APPEND fornax_libraries fornax_shared)
endif()

# fornax_objects(TARGET SOURCES…): one object library that becomes part of both libraries.
function(fornax_objects target)
  add_library(${target} OBJECT ${ARGN})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${target} PRIVATE fornax_options)
  foreach(library IN LISTS fornax_libraries)
    target_sources(${library} PRIVATE $<TARGET_OBJECTS:${target}>)
  endforeach()
endfunction()

foreach(folder IN LISTS fornax_folders ITEMS .)
  string(REPLACE "/" "_" target "fornax_${folder}")
  string(REPLACE "_." "_top" target "${target}")
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/fornax/${folder}/*.cpp")
  if(sources)
    fornax_objects(${target} ${sources})
    if(folder IN_LIST third_party_folders)
      target_link_libraries(${target} PRIVATE fornax_third_party_headers)
    endif()
  endif()

  file(GLOB kernels CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/fornax/${folder}/kernels/*.cpp")
  if(kernels)
    foreach(set IN LISTS kernel_sets)
      fornax_objects(${target}_kernels_${set} ${kernels})
      target_compile_definitions(${target}_kernels_${set} PRIVATE FX_ISA=${set})
      target_compile_options(${target}_kernels_${set} PRIVATE ${kernel_flags}
                                                              ${kernel_march_${set}})
    endforeach()
  endif()
endforeach()

foreach(library IN LISTS fornax_libraries)
  set_target_properties(${library} PROPERTIES OUTPUT_NAME fornax LINKER_LANGUAGE CXX)
  target_compile_features(${library} PUBLIC cxx_std_20)
  target_include_directories(${library} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                  $<INSTALL_INTERFACE:include>)
  target_link_libraries(
    ${library}
    PRIVATE $<BUILD_INTERFACE:fornax_options>
    PRIVATE fornax::dnnl fornax::openblas ZLIB::ZLIB Threads::Threads gomp
            ${CMAKE_DL_LIBS})
endforeach()
set_target_properties(fornax_static PROPERTIES EXPORT_NAME fornax)
if(FORNAX_BUILD_SHARED)
  set_target_properties(fornax_shared PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION 0)
endif()
