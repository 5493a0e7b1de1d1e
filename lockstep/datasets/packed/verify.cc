#include "lockstep/datasets/packed/verify.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/base/in_order.h"
#include "lockstep/base/shown.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/datasets/files/file_bytes.h"
#include "lockstep/datasets/files/kind.h"
#include "lockstep/datasets/files/listing.h"
#include "lockstep/datasets/packed/shard_reader.h"

namespace lockstep::datasets {
namespace {

constexpr size_t kPiece = 1 << 20;

// The hash of all behind the head, which the manifest has.
uint64_t hash_of(const std::string& path) {
  const DataFile file(path);
  Xxh3 hash;
  std::vector<uint8_t> memory;
  for (uint64_t at = kShardAlignment; at < file.size(); at += kPiece) {
    hash.add(file.part(at, std::min<uint64_t>(kPiece, file.size() - at), memory));
  }
  return hash.value();
}

using Lines = std::vector<std::string>;

// The damaged records of a shard that opens.
Lines bad_records(const ShardReader& shard) {
  Lines lines;
  std::vector<uint8_t> memory;
  for (int64_t record = 0; record < shard.size(); ++record) {
    try {
      shard.read(record, memory);
    } catch (const DataError& error) {
      lines.emplace_back(error.what());
    }
  }
  return lines;
}

Lines verify_shard(const std::string& folder, const ShardFile& file) {
  const std::string path = folder + "/" + file.file;
  try {
    const ShardReader shard(path);
    if (shard.bytes() == file.bytes && hash_of(path) == file.hash) {
      check_shard(shard, file);
      return {};
    }
    Lines lines = bad_records(shard);
    if (!lines.empty()) return lines;
  } catch (const DataError& error) {
    return {error.what()};
  }
  return {cat(shown(path), ": is not the shard that manifest.json names; get it, or pack it, again")};
}

void verify_part(const std::string& folder, int threads, Verified& verified) {
  const Manifest manifest = read_manifest(folder);
  for (const ShardFile& shard : manifest.shards) verified.bytes += shard.bytes;
  verified.shards += manifest.shards.size();
  const auto make_worker = [&] {
    return [&](int64_t index) { return verify_shard(folder, manifest.shards[static_cast<size_t>(index)]); };
  };
  in_order<Lines>(std::ssize(manifest.shards), threads, make_worker, [&](int64_t, Outcome<Lines> outcome) {
    for (std::string& line : std::move(outcome).get()) verified.problems.push_back(std::move(line));
  });
}

// The folders of all parts: those that a run opens, whether there is a manifest or not, and further ones that have one.
std::vector<std::string> folders_of(const std::string& path) {
  const auto has_manifest = [](const std::string& folder) { return is_file(folder + "/manifest.json"); };
  if (has_manifest(path)) return {path};
  std::vector<std::string> folders = {path + "/train"};
  for (const char* part : kTestParts) {
    const std::string folder = path + "/" + part;
    const bool is_opened = folders.size() == 1 && is_folder(folder);
    if (is_opened || has_manifest(folder)) folders.push_back(folder);
  }
  return folders;
}

}  // namespace

Verified verify_packed(const std::string& path, int threads) {
  Verified verified;
  for (const std::string& folder : folders_of(path)) {
    try {
      verify_part(folder, threads, verified);
    } catch (const DataError& error) {
      verified.problems.emplace_back(error.what());
    }
  }
  return verified;
}

}  // namespace lockstep::datasets
