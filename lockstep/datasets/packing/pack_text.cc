#include "lockstep/datasets/packing/pack_text.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "lockstep/base/shown.h"
#include "lockstep/base/text.h"
#include "lockstep/datasets/files/listing.h"

namespace lockstep::datasets {
namespace {

uint64_t bytes_of(const PackedPart& part) {
  uint64_t bytes = 0;
  for (const ShardFile& shard : part.manifest.shards) bytes += shard.bytes;
  return bytes;
}

}  // namespace

std::string text_of(const PackResult& result, const std::string& out, double seconds) {
  std::string text;
  for (const PackedPart& part : result.parts) {
    const size_t shards = part.manifest.shards.size();
    text += cat("packed ", part.name, part.name.empty() ? "" : ": ", part.samples, " samples of ", part.text, ", ",
                human_bytes(part.stored_bytes), ", into ", shards, shards == 1 ? " shard of " : " shards of ",
                human_bytes(bytes_of(part)), " (", part.manifest.packing, ")\n");
    for (const std::string& name : part.emptied)
      text += cat("warning: all of the class ", shown(name), " was left out\n");
  }
  for (const std::string& line : result.left_out) text += cat("left out: ", line, "\n");
  for (const std::string& line : result.warnings) text += cat("warning: ", line, "\n");
  char time[32];
  std::snprintf(time, sizeof time, "%.1f", seconds);
  return text + cat("wrote ", shown(out), " in ", time, " s: lockstep train ", recipe_of(result.kind), " --data ",
                    shown(out), "\n");
}

nlohmann::ordered_json json_of(const PackResult& result, double seconds) {
  using Json = nlohmann::ordered_json;
  Json parts = Json::array();
  for (const PackedPart& part : result.parts) {
    parts.push_back({{"name", part.name},
                     {"samples", part.samples},
                     {"shards", part.manifest.shards.size()},
                     {"bytes", bytes_of(part)},
                     {"stored_bytes", part.stored_bytes},
                     {"packing", part.manifest.packing},
                     {"fingerprint", part.manifest.fingerprint()},
                     {"emptied_classes", part.emptied}});
  }
  return {{"out", result.out},           {"recipe", recipe_of(result.kind)}, {"parts", std::move(parts)},
          {"left_out", result.left_out}, {"warnings", result.warnings},      {"seconds", seconds}};
}

}  // namespace lockstep::datasets
