#include "fornax/base/compress.h"

#include <zlib.h>

#include <algorithm>
#include <climits>

#include "fornax/base/error.h"

namespace fornax {
namespace {

// zlib's windowBits: negative for a raw stream, 16 more for gzip.
int window_bits(Wrap wrap) { return wrap == Wrap::kRaw ? -15 : wrap == Wrap::kGzip ? 15 + 16 : 15; }

Bytef* input_of(ByteSpan bytes) {
  return reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
}

struct Inflater {
  z_stream stream = {};
  explicit Inflater(Wrap wrap) {
    FX_CHECK(inflateInit2(&stream, window_bits(wrap)) == Z_OK, kMemory,
             "no memory for decompression");
  }
  Inflater(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

struct Deflater {
  z_stream stream = {};
  Deflater(Wrap wrap, int level) {
    constexpr int kMemoryLevel = 8;
    FX_CHECK(deflateInit2(&stream, level, Z_DEFLATED, window_bits(wrap), kMemoryLevel,
                          Z_DEFAULT_STRATEGY) == Z_OK,
             kMemory, "no memory for compression at level ", level);
  }
  Deflater(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&stream); }
};

// zlib counts in unsigned int.
uInt piece(size_t n) { return uInt(std::min<size_t>(n, UINT_MAX / 2)); }

}  // namespace

Bytes inflate(ByteSpan compressed, Wrap wrap, uint64_t limit, std::string_view name) {
  limit = std::min<uint64_t>(limit, INT64_MAX);
  Inflater inflater(wrap);
  z_stream& z = inflater.stream;
  Bytes out;
  size_t produced = 0;
  for (;;) {
    if (produced == out.size()) {
      FX_CHECK(produced <= limit, kIo, name, " unpacks to more than the limit of ", limit,
               " bytes");
      // One byte past the limit, so that a stream of exactly `limit` bytes meets its end.
      size_t wanted = std::max<size_t>(out.size() * 2, std::max<size_t>(4096, compressed.size()));
      out.resize(size_t(std::min<uint64_t>(wanted, limit + 1)));
    }
    z.next_in = input_of(compressed);
    z.avail_in = piece(compressed.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data() + produced);
    z.avail_out = piece(out.size() - produced);
    uInt in_before = z.avail_in, out_before = z.avail_out;
    int status = ::inflate(&z, Z_NO_FLUSH);
    size_t used = in_before - z.avail_in, made = out_before - z.avail_out;
    compressed = compressed.subspan(used);
    produced += made;
    if (status == Z_STREAM_END) {
      if (compressed.empty()) break;
      FX_CHECK(wrap == Wrap::kGzip, kIo, name, " has ", compressed.size(),
               " bytes after the end of its compressed data");
      inflateReset(&z);
      continue;
    }
    FX_CHECK(status == Z_OK || status == Z_BUF_ERROR, kIo, name,
             " is damaged: ", z.msg ? z.msg : "bad compressed data");
    FX_CHECK(used != 0 || made != 0 || produced == out.size(), kIo, name,
             " is cut short: its compressed data ends after ", produced, " bytes of content");
  }
  FX_CHECK(produced <= limit, kIo, name, " unpacks to more than the limit of ", limit, " bytes");
  out.resize(produced);
  return out;
}

Bytes deflate(ByteSpan content, Wrap wrap, int level) {
  Deflater deflater(wrap, level);
  z_stream& z = deflater.stream;
  Bytes out(deflateBound(&z, content.size()));
  size_t produced = 0;
  for (;;) {
    z.next_in = input_of(content);
    z.avail_in = piece(content.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data() + produced);
    z.avail_out = piece(out.size() - produced);
    bool last = z.avail_in == content.size();
    uInt in_before = z.avail_in, out_before = z.avail_out;
    int status = ::deflate(&z, last ? Z_FINISH : Z_NO_FLUSH);
    content = content.subspan(in_before - z.avail_in);
    produced += out_before - z.avail_out;
    if (status == Z_STREAM_END) break;
    FX_ASSERT(status == Z_OK || status == Z_BUF_ERROR);
    if (produced == out.size()) out.resize(out.size() + out.size() / 2 + 64);
  }
  out.resize(produced);
  return out;
}

uint32_t crc32(ByteSpan bytes, uint32_t start) {
  return uint32_t(::crc32_z(start, input_of(bytes), bytes.size()));
}

}  // namespace fornax
