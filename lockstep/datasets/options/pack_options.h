// The options of packing a data set.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "lockstep/config/option_set.h"
#include "lockstep/datasets/options/image_options.h"

namespace lockstep::datasets {

// How packed images are stored. kKeep: as they were, byte for byte; what is resized stays JPEG, or becomes PNG.
enum class PackCodec { kKeep, kJpeg, kPng, kRaw };
constexpr auto words(PackCodec) {
  return std::to_array<config::Word<PackCodec>>(
      {{PackCodec::kKeep, "keep"}, {PackCodec::kJpeg, "jpeg"}, {PackCodec::kPng, "png"}, {PackCodec::kRaw, "raw"}});
}

struct PackOptions {
  std::string data, out;    // what is packed, and the folder that it is packed into
  std::optional<int> size;  // pixels: larger images get a shorter side of so many
  PackCodec codec = PackCodec::kKeep;
  std::optional<int>
      quality;  // of JPEGs that are encoded, 1 to 100; unset: 90, and JPEGs are encoded anew only if resized
  std::optional<Exif> exif;    // how images and masks are turned that are encoded anew; unset: on
  bool shuffle = true;         // else samples keep their order
  int64_t seed = 1;            // of the order
  std::optional<int> shards;   // of each part; unset: as many as shard_size asks for
  int shard_size = 256;        // MiB at most, but for larger samples
  std::optional<int> workers;  // threads; unset: one for each core
  int skip_bad = 0;            // samples that may be left out since they can't be decoded
  bool overwrite = false;      // replace packed data that is there

  void declare(config::OptionSet& options);
  // Throws ConfigError for options that don't go together.
  void check() const;
  // Whether images can be encoded anew.
  bool recodes() const { return size || codec != PackCodec::kKeep; }
};

}  // namespace lockstep::datasets
