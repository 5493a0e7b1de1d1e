// The manifest of a folder of packed data: what its shards are and what was packed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/datasets/packed/shard_writer.h"

namespace lockstep::datasets {

class ShardReader;

// What the samples are. CIFAR's are told apart, for they are trained on in another way than photographs.
enum class Packed : uint8_t { kImages, kMasks, kCifar10, kCifar100 };

// The recipe that trains on them.
constexpr const char* recipe_of(Packed kind) { return kind == Packed::kMasks ? "unet" : "imagenet"; }

// The size at which it does where nobody says another: pixels a side, of images with masks the shorter one.
constexpr int usual_size(Packed kind) {
  if (kind == Packed::kMasks) return 256;
  return kind == Packed::kCifar10 || kind == Packed::kCifar100 ? 32 : 224;
}

struct Manifest {
  Packed kind = Packed::kImages;
  std::string source;                    // the fingerprint of the data that was packed
  std::string packing;                   // how: "resized to 256, JPEG of quality 90"
  std::vector<std::string> class_names;  // UTF-8, or what comes closest
  std::vector<uint32_t> mask_values;     // of kMasks: all that occur, ascending
  std::vector<ShardFile> shards;

  uint64_t records() const;
  std::string fingerprint() const;  // of the packed data itself
};

// Writes folder/manifest.json, and waits until it is on the disk. Throws IoError.
void write_manifest(const std::string& folder, const Manifest& manifest);

// Reads it. Throws DataError that names the file and what is wrong in it.
Manifest read_manifest(const std::string& folder);

// Reads a manifest's text. `path` begins errors.
Manifest manifest_of(std::span<const uint8_t> text, const std::string& path);

// Throws DataError for a shard of another size, or of another number of records, than the manifest names.
void check_shard(const ShardReader& shard, const ShardFile& named);

// What lies in a folder of packed data, or in the part train/ of one. Throws as read_manifest does.
Packed packed_kind(const std::string& folder);

}  // namespace lockstep::datasets
