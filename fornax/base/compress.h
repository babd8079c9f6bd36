// zlib's formats on whole buffers, with limits that hostile data cannot pass.
#pragma once

#include <cstdint>
#include <string_view>

#include "fornax/base/file.h"

namespace fornax {

enum class Wrap : uint8_t { kRaw, kZlib, kGzip };

// The content of a compressed stream; gzip may hold several members one after another. Memory grows
// with the output that really appears, never with what a header promises. Throws Error(kIo) naming
// `name` for damaged or cut data, bytes after the end, and output longer than `limit`.
Bytes inflate(ByteSpan compressed, Wrap wrap, uint64_t limit, std::string_view name);
// `level` as zlib's: 1 fast to 9 small.
Bytes deflate(ByteSpan content, Wrap wrap, int level = 6);
// The checksum of zip, gzip and PNG; `start` continues an earlier one.
uint32_t crc32(ByteSpan bytes, uint32_t start = 0);

// Deflate's best ratio: no stream of n bytes holds more than this times n (plus a block's slack).
inline constexpr uint64_t kMaxDeflateRatio = 1032;

}  // namespace fornax
