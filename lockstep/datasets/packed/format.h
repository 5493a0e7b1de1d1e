// The packed format: a shard is one file of many records, which any number of processes read at any place.
//
//   head    "LKSR" | u32 version | u64 records | u64 index_offset | u64 xxh3 of the 24 bytes before | zeros to byte 64
//   records each at a multiple of 64, with zeros between them:
//           u64 xxh3 of all that follows in the record | i32 class | u16 width, height | u8 codec | u8 fields | u16 0 |
//           u32 bytes[fields] | the fields' bytes
//           field 0: the image; field 1: its mask. Width and height are the upright image's, 0 where above 65535.
//   index   {u64 offset, u32 bytes, i32 class, u64 source}[records] | u64 xxh3 of that
//           source: the sample's number in the data that was packed
//   names   u32 count | {u32 length, the text}[count] | u64 xxh3 of that
//           the classes' names, then the records' (their files')
//
// All numbers are little-endian, and offsets count from the file's first byte. A folder of shards has a manifest.json.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep::datasets {

constexpr std::string_view kShardMagic = "LKSR";
constexpr uint32_t kShardVersion = 1;
constexpr uint64_t kShardAlignment = 64;  // of records; the head takes as much
constexpr size_t kHashedHeadBytes = 24;   // of the head
constexpr size_t kRecordHeadBytes = 20;   // before the fields' lengths
constexpr size_t kIndexEntryBytes = 24;

enum class Codec : uint8_t { kJpeg, kPng, kRaw, kGif, kNpy };
constexpr int kCodecs = 5;

// A sample. kRaw is width × height pixels, one byte each or three, R G B.
struct PackedRecord {
  int32_t class_number = -1;       // -1: none
  uint16_t width = 0, height = 0;  // upright; 0 where above 65535
  Codec codec = Codec::kJpeg;      // of the image
  std::span<const uint8_t> image;
  std::span<const uint8_t> mask;  // empty: none
};

// Appends a number, lowest byte first.
template <typename T>
void append(std::vector<uint8_t>& to, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) to.push_back(static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i)));
}

// The number at byte `at`, which must be there.
template <typename T>
T number_at(std::span<const uint8_t> bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = sizeof(T); i-- > 0;) value = value << 8 | bytes[at + i];
  return static_cast<T>(value);
}

}  // namespace lockstep::datasets
