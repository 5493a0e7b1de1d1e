#include "lockstep/datasets/files/gzip.h"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"

namespace lockstep::datasets {
namespace {

constexpr size_t kSmallestMember = 18;   // header, trailer and nothing between
constexpr size_t kHeadRoom = 128 << 10;  // a stored block of 64 KiB, the largest unit that is written whole, fits

struct FreeDecompressor {
  void operator()(libdeflate_decompressor* decompressor) const { libdeflate_free_decompressor(decompressor); }
};
using Decompressor = std::unique_ptr<libdeflate_decompressor, FreeDecompressor>;

Decompressor make_decompressor() {
  Decompressor decompressor(libdeflate_alloc_decompressor());
  if (!decompressor) throw IoError("out of memory: no room to unpack gzip data");
  return decompressor;
}

[[noreturn]] void refuse_excess(const std::string& path, uint64_t most) {
  throw DataError(shown(path), ": byte ", most, " of what it unpacks to: data goes on after the ", most,
                  " bytes that it may have; the file is damaged or not what it seems");
}

// `at`: where the damaged member begins. `promise`: what was to come out of it, or nothing.
[[noreturn]] void throw_damaged(std::span<const uint8_t> packed, size_t at, const std::string& promise,
                                const std::string& path) {
  throw DataError(shown(path), ": byte ", at, ": the gzip data that begins here is damaged or cut short (",
                  packed.size() - at, " bytes of it are there", promise, "): get the file again");
}

Bytes enlarged(Bytes& old, size_t filled, uint64_t size, const std::string& path) {
  Bytes bytes(size, path);
  std::memcpy(bytes.data(), old.data(), filled);
  return bytes;
}

}  // namespace

bool is_gzip(std::span<const uint8_t> bytes) { return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b; }

uint64_t gunzip_bound(uint64_t packed_bytes) { return packed_bytes * 1032; }

// libdeflate unpacks all or nothing, but what it wrote before the room ended is there. It only serves to bound the real
// unpacking, which reads the header again. Zeros stand for what was not written.
Bytes gunzip_head(std::span<const uint8_t> packed, size_t count, const std::string& path) {
  Bytes room(kHeadRoom, path);
  std::memset(room.data(), 0, room.size());
  size_t used = 0;
  size_t written = kHeadRoom;
  const auto result = libdeflate_gzip_decompress_ex(make_decompressor().get(), packed.data(), packed.size(),
                                                    room.data(), room.size(), &used, &written);
  const bool is_damaged = result != LIBDEFLATE_SUCCESS && result != LIBDEFLATE_INSUFFICIENT_SPACE;
  if (is_damaged && std::all_of(room.data(), room.data() + room.size(), [](uint8_t byte) { return byte == 0; })) {
    throw_damaged(packed, 0, "", path);
  }
  room.shrink(std::min(count, result == LIBDEFLATE_SUCCESS ? written : kHeadRoom));
  return room;
}

Bytes gunzip(std::span<const uint8_t> packed, uint64_t expected, uint64_t most, const std::string& path) {
  const std::string promise = expected == most ? cat(", ", expected, " were to come out of it") : "";
  most = std::min(most, gunzip_bound(packed.size()));
  const Decompressor decompressor = make_decompressor();
  Bytes out(std::min(std::max<uint64_t>(expected, 1), most), path);
  size_t at = 0;
  size_t filled = 0;
  while (at < packed.size()) {
    if (!is_gzip(packed.subspan(at)) || packed.size() - at < kSmallestMember) {
      throw DataError(shown(path), ": byte ", at,
                      ": not gzip data; the file is damaged or not wholly gzip: get it again");
    }
    size_t used = 0;
    size_t written = 0;
    const auto result = libdeflate_gzip_decompress_ex(decompressor.get(), packed.data() + at, packed.size() - at,
                                                      out.data() + filled, out.size() - filled, &used, &written);
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
      if (out.size() == most) refuse_excess(path, most);
      out = enlarged(out, filled, std::min<uint64_t>(most, 2 * out.size()), path);
      continue;
    }
    if (result != LIBDEFLATE_SUCCESS) throw_damaged(packed, at, promise, path);
    at += used;
    filled += written;
  }
  out.shrink(filled);
  return out;
}

uint64_t gunzip_size_hint(std::span<const uint8_t> packed) {
  if (packed.size() < kSmallestMember) return 0;
  const auto tail = packed.last(4);
  return uint64_t{tail[0]} | uint64_t{tail[1]} << 8 | uint64_t{tail[2]} << 16 | uint64_t{tail[3]} << 24;
}

}  // namespace lockstep::datasets
