# Compiler settings that every target of this project shares (interface target fornax_options).

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

  # -O1 with line numbers, for the edit-compile-test loop and for the sanitizers.
  set(CMAKE_CXX_FLAGS_DEV "-O1 -g1")
  set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g0 -DNDEBUG")

  # Object files are shared between checkouts: the source folder is no part of a cache key.
  find_program(FORNAX_CCACHE ccache)
  if(FORNAX_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER
        env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${FORNAX_CCACHE}")
  endif()
endif()

add_library(fornax_options INTERFACE)
target_compile_features(fornax_options INTERFACE cxx_std_20)
target_compile_options(
  fornax_options INTERFACE -Wall -Wextra -fvisibility-inlines-hidden -fno-plt
                           $<$<CXX_COMPILER_ID:GNU>:-Wno-init-list-lifetime>
                           $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
target_include_directories(fornax_options INTERFACE "${PROJECT_SOURCE_DIR}")

if(FORNAX_SANITIZE)
  set(sanitize_flags -fsanitize=${FORNAX_SANITIZE} -fno-omit-frame-pointer)
  if(FORNAX_SANITIZE MATCHES "undefined")
    list(APPEND sanitize_flags -fno-sanitize-recover=undefined)
  endif()
  target_compile_options(fornax_options INTERFACE ${sanitize_flags})
  target_link_options(fornax_options INTERFACE ${sanitize_flags})
endif()
