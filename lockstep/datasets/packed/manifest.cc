#include "lockstep/datasets/packed/manifest.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <new>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/shown.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/datasets/files/file_bytes.h"
#include "lockstep/datasets/files/file_errors.h"
#include "lockstep/datasets/files/kind.h"
#include "lockstep/datasets/files/listing.h"
#include "lockstep/datasets/packed/shard_reader.h"

namespace lockstep::datasets {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMostBytes = 16 << 20;  // as a tree, JSON of nothing but brackets takes a hundred times as much
constexpr size_t kMostShown = 200;         // bytes of a foreign text in an error
constexpr std::array kKinds = {"images", "masks", "CIFAR-10", "CIFAR-100"};

std::string path_in(const std::string& folder) { return folder + "/manifest.json"; }

std::string excerpt(const std::string& text) {
  const std::string line = shown(first_line(text).substr(0, kMostShown));
  return text.size() > kMostShown ? line + " …" : line;
}

uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  if (error != std::errc() || end != text.data() + text.size()) throw DataError("xxh3 is no hexadecimal number");
  return hash;
}

uint64_t count_of(const Json& json) {
  if (!json.is_number_unsigned()) throw DataError("a number of records or bytes is none");
  return json;
}

Packed kind_named(const std::string& name) {
  const auto found = std::find(kKinds.begin(), kKinds.end(), name);
  if (found == kKinds.end()) throw DataError("it holds '", shown(name), "', which this program does not know");
  return static_cast<Packed>(found - kKinds.begin());
}

// A shard lies in the manifest's own folder, wherever a foreign manifest points.
ShardFile shard_of(const Json& json) {
  ShardFile shard{.file = json.at("file"),
                  .records = count_of(json.at("records")),
                  .bytes = count_of(json.at("bytes")),
                  .hash = hash_of(json.at("xxh3"))};
  if (shard.file.empty() || shard.file.find('/') != shard.file.npos || shard.file[0] == '.') {
    throw DataError("a shard's file is named '", excerpt(shard.file), "'");
  }
  return shard;
}

}  // namespace

uint64_t Manifest::records() const {
  uint64_t records = 0;
  for (const ShardFile& shard : shards) records += shard.records;
  return records;
}

std::string Manifest::fingerprint() const {
  std::string all;
  for (const ShardFile& shard : shards) all += cat(shard.records, " ", hex(shard.hash), "\n");
  return cat("packed ", records(), " xxh3 ", hex(xxh3(all)));
}

void write_manifest(const std::string& folder, const Manifest& manifest) {
  Json json{{"format", "lockstep packed"},
            {"version", kShardVersion},
            {"kind", kKinds.at(static_cast<size_t>(manifest.kind))},
            {"source", manifest.source},
            {"packing", manifest.packing},
            {"records", manifest.records()},
            {"classes", manifest.class_names},
            {"mask_values", manifest.mask_values},
            {"shards", Json::array()}};
  for (const ShardFile& shard : manifest.shards) {
    json["shards"].push_back(
        {{"file", shard.file}, {"records", shard.records}, {"bytes", shard.bytes}, {"xxh3", hex(shard.hash)}});
  }
  const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n", path = path_in(folder);
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  const auto check = [&](bool fine) {
    if (!fine) throw_write_error(path, errno);
  };
  check(static_cast<bool>(file));
  check(write_all(file.get(), text) && fsync(file.get()) == 0);
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = path_in(folder);
  std::vector<uint8_t> memory;
  return manifest_of(read_whole(path, memory, kMostBytes), path);
}

Manifest manifest_of(std::span<const uint8_t> text, const std::string& path) {
  try {
    const Json json = Json::parse(text.begin(), text.end());
    if (json.at("format") != "lockstep packed") throw DataError("its format is not 'lockstep packed'");
    if (json.at("version") != kShardVersion) {
      throw DataError("version ", excerpt(json.at("version").dump()), ", and this program reads version ",
                      kShardVersion);
    }
    Manifest manifest{.kind = kind_named(json.at("kind")),
                      .source = json.at("source"),
                      .packing = json.at("packing"),
                      .class_names = json.at("classes"),
                      .mask_values = {},
                      .shards = {}};
    if (manifest.kind == Packed::kMasks) {
      manifest.mask_values = json.at("mask_values").get<std::vector<uint32_t>>();
    }
    for (const Json& shard : json.at("shards")) manifest.shards.push_back(shard_of(shard));
    return manifest;
  } catch (const std::bad_alloc&) {
    throw IoError(shown(path), ": out of memory: no room for its ", human_bytes(text.size()));
  } catch (const std::exception& error) {
    throw DataError(shown(path), ": no manifest of packed data: ", excerpt(error.what()),
                    "; it is damaged, or another program's");
  }
}

void check_shard(const ShardReader& shard, const ShardFile& named) {
  if (shard.bytes() == named.bytes && shard.size() == static_cast<int64_t>(named.records)) return;
  throw DataError(shown(shard.path()), ": ", shard.size(), " records in ", shard.bytes(),
                  " bytes, and manifest.json says ", named.records, " in ", named.bytes,
                  "; they don't belong together: get both, or pack the data, again");
}

Packed packed_kind(const std::string& folder) {
  return read_manifest(is_file(path_in(folder)) ? folder : folder + "/train").kind;
}

}  // namespace lockstep::datasets
