# Third-party libraries. Their headers reach only the folders that are named in FornaxLibrary,
# FornaxPrograms and FornaxTests; no public header includes them.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)

# fornax_import(NAME LIBRARY INCLUDE_DIR): target fornax::NAME for one unpacked shared library.
function(fornax_import name library include_dir)
  if(NOT EXISTS "${library}")
    message(FATAL_ERROR "${library} is missing: run scripts/setup.sh, or set FORNAX_DEPS")
  endif()
  add_library(fornax::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(fornax::${name} PROPERTIES IMPORTED_LOCATION "${library}"
                                                   INTERFACE_INCLUDE_DIRECTORIES "${include_dir}")
endfunction()

fornax_import(dnnl "${FORNAX_DEPS}/lib/libdnnl.so.3" "${FORNAX_DEPS}/include")
fornax_import(openblas "${FORNAX_DEPS}/openblas/lib/libscipy_openblas.so"
              "${FORNAX_DEPS}/openblas/include")

add_library(fornax_third_party_headers INTERFACE)
target_include_directories(
  fornax_third_party_headers SYSTEM INTERFACE "${FORNAX_DEPS}/include"
                                              "${FORNAX_DEPS}/openblas/include")
