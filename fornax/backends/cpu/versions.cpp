#include <dnnl.h>
#include <zlib.h>

#include "fornax/base/error.h"
#include "fornax/base/version.h"

extern "C" char* scipy_openblas_get_config(void);

namespace fornax {

std::string library_versions() {
  const dnnl_version_t* v = dnnl_version();
  std::string blas = scipy_openblas_get_config();  // "OpenBLAS 0.3.34 ..."
  size_t second = blas.find(' ', blas.find(' ') + 1);
  return str("oneDNN ", v->major, ".", v->minor, ".", v->patch, ", ", blas.substr(0, second),
             ", zlib ", zlibVersion());
}

}  // namespace fornax
