#include "lockstep/datasets/packed/manifest.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/datasets/files/file_bytes.h"
#include "lockstep/datasets/files/listing.h"

namespace lockstep::datasets {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMostBytes = 256 << 20;

std::string path_in(const std::string& folder) { return folder + "/manifest.json"; }

uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  if (error != std::errc() || end != text.data() + text.size()) throw DataError("xxh3 is no hexadecimal number");
  return hash;
}

// A shard lies in the manifest's own folder, wherever a foreign manifest points.
ShardFile shard_of(const Json& json) {
  ShardFile shard{.file = json.at("file"),
                  .records = json.at("records"),
                  .bytes = json.at("bytes"),
                  .hash = hash_of(json.at("xxh3"))};
  if (shard.file.empty() || shard.file.find('/') != shard.file.npos || shard.file[0] == '.') {
    throw DataError("a shard's file is named '", shown(shard.file), "'");
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
  Json json{{"format", "lockstep packed"}, {"version", kShardVersion},      {"source", manifest.source},
            {"packing", manifest.packing}, {"records", manifest.records()}, {"classes", manifest.class_names},
            {"shards", Json::array()}};
  for (const ShardFile& shard : manifest.shards) {
    json["shards"].push_back(
        {{"file", shard.file}, {"records", shard.records}, {"bytes", shard.bytes}, {"xxh3", hex(shard.hash)}});
  }
  const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n", path = path_in(folder);
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  const auto check = [&](bool fine) {
    if (!fine) throw IoError(path, ": can't be written: ", errno_text(errno));
  };
  check(static_cast<bool>(file));
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = ::write(file.get(), text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    check(n > 0);
    at += static_cast<size_t>(n);
  }
  check(fsync(file.get()) == 0);
}

Manifest read_manifest(const std::string& folder) {
  const std::string path = path_in(folder);
  std::vector<uint8_t> memory;
  const auto bytes = read_whole(path, memory, kMostBytes);
  try {
    const Json json = Json::parse(bytes.begin(), bytes.end());
    if (json.at("format") != "lockstep packed") throw DataError("its format is not 'lockstep packed'");
    if (json.at("version") != kShardVersion) {
      throw DataError("version ", json.at("version").dump(), ", and this program reads version ", kShardVersion);
    }
    Manifest manifest{
        .source = json.at("source"), .packing = json.at("packing"), .class_names = json.at("classes"), .shards = {}};
    for (const Json& shard : json.at("shards")) manifest.shards.push_back(shard_of(shard));
    return manifest;
  } catch (const std::exception& error) {
    if (dynamic_cast<const IoError*>(&error) != nullptr) throw;
    throw DataError(shown(path), ": no manifest of packed data: ", first_line(error.what()),
                    "; it is damaged, or another program's");
  }
}

}  // namespace lockstep::datasets
