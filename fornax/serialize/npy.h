// NumPy's .npy format, versions 1 to 3: one array a file.
//
// Bool, int8 to int64, uint8, float16 to float64, complex64 and complex128, little- or big-endian,
// row- or column-major. Arrays of Python objects (pickles) are refused: reading one runs code.
// bfloat16 and complex32 have no .npy type.
#pragma once

#include <string>

#include "fornax/serialize/raw_tensor.h"

namespace fornax {

// Row-major and little-endian, whatever the file has; the name stays empty. Throws Error(kIo) for a
// damaged file, Error(kUnsupported) for types that Fornax lacks. The file must end with the array.
RawTensor read_npy(const std::string& path);
RawTensor read_npy(const InputFile& file);

// Row-major and little-endian, in the lowest version that holds it, atomically. Throws
// Error(kUnsupported) for bfloat16 and complex32.
void write_npy(const std::string& path, const RawTensorView& tensor);
// What precedes the array's bytes in a file.
std::string npy_header(const RawTensorView& tensor);

}  // namespace fornax
