// Unpacking gzip data within bounds, by libdeflate.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lockstep/data/file_bytes.h"

namespace lockstep::data {

// Whether the bytes begin as gzip data does.
bool is_gzip(std::span<const uint8_t> bytes);

// The most bytes that this much gzip data can unpack to: deflate packs 258 bytes into 2 bits at best.
uint64_t gunzip_bound(uint64_t packed_bytes);

// The first bytes of what gzip data unpacks to, at most `count` ≤ 64 KiB of them; fewer where it holds fewer or is
// damaged. Good for reading a header before trusting the rest.
Bytes gunzip_head(std::span<const uint8_t> packed, size_t count, const std::string& path);

// All that gzip data (one member, or several one after the other) unpacks to. `expected` bytes are made room for at
// first (a promise if it equals `most`, else a guess); never more than `most`. Throws DataError, naming `path`, for
// damage and for more than `most` bytes.
Bytes gunzip(std::span<const uint8_t> packed, uint64_t expected, uint64_t most, const std::string& path);

// The unpacked size that the last member of gzip data gives, modulo 2^32: a guess, for it may lie.
uint64_t gunzip_size_hint(std::span<const uint8_t> packed);

}  // namespace lockstep::data
