// For tests: packed data.
#pragma once

#include <string>
#include <vector>

#include "lockstep/datasets/packed/manifest.h"
#include "lockstep/image/pixels.h"

namespace lockstep::datasets::testing {

// Packs images of the classes cats, dogs, cats … into shard-0.lks and so on. Image i of shard s was s-i.img.
inline void write_packed(const std::string& folder, const std::vector<std::vector<std::string>>& shards,
                         Codec codec = Codec::kJpeg, image::Size size = {}) {
  Manifest manifest{.source = "test", .packing = "as it is", .class_names = {"cats", "dogs"}, .shards = {}};
  uint64_t source = 0;
  for (size_t s = 0; s < shards.size(); ++s) {
    ShardWriter writer(folder, cat("shard-", s, ".lks"));
    for (size_t i = 0; i < shards[s].size(); ++i) {
      const std::string& image = shards[s][i];
      writer.add({.class_number = static_cast<int32_t>(source % 2),
                  .width = static_cast<uint16_t>(size.width),
                  .height = static_cast<uint16_t>(size.height),
                  .codec = codec,
                  .image = {reinterpret_cast<const uint8_t*>(image.data()), image.size()},
                  .mask = {}},
                 source, cat(s, "-", i, ".img"));
      ++source;
    }
    manifest.shards.push_back(writer.finish(manifest.class_names));
  }
  write_manifest(folder, manifest);
}

}  // namespace lockstep::datasets::testing
