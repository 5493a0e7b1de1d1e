// Unpacks gzip data within bounds, by libdeflate.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lockstep/datasets/files/file_bytes.h"

namespace lockstep::datasets {

// Whether the bytes begin as gzip data does.
bool is_gzip(std::span<const uint8_t> bytes);

// The most bytes that `packed_bytes` of gzip data can unpack to: deflate packs at most 258 bytes into 2 bits.
uint64_t gunzip_bound(uint64_t packed_bytes);

// The first bytes of the unpacked data, at most `count` ≤ 64 KiB; fewer where the data is shorter. Serves to read a
// header before the rest is trusted. Zeros stand for what damaged data lack; throws DataError where they lack all.
Bytes gunzip_head(std::span<const uint8_t> packed, size_t count, const std::string& path);

// Unpacks gzip data of one member, or of several in a row. Reserves memory for `expected` bytes, a promise if it equals
// `most` and else a guess. Throws DataError that names `path` for damage and for more than `most` bytes.
Bytes gunzip(std::span<const uint8_t> packed, uint64_t expected, uint64_t most, const std::string& path);

// The unpacked size that the last member claims, modulo 2^32. A hint: the claim may be false.
uint64_t gunzip_size_hint(std::span<const uint8_t> packed);

}  // namespace lockstep::datasets
