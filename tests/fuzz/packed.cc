// Packed data: a shard, or a manifest where the file begins with a brace.
#include "fuzz.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/datasets/packed/manifest.h"
#include "lockstep/datasets/packed/shard_reader.h"

using namespace lockstep;
using datasets::number_at;

namespace {

void set_hash(std::span<uint8_t> bytes, size_t at, size_t begin, size_t end) {
  const uint64_t hash = xxh3(bytes.subspan(begin, end - begin));
  for (size_t i = 0; i < 8; ++i) bytes[at + i] = static_cast<uint8_t>(hash >> (8 * i));
}

// Puts all checksums right that lie within the file.
void repair(std::span<uint8_t> bytes) {
  if (bytes.size() < datasets::kShardAlignment) return;
  const auto records = number_at<uint64_t>(bytes, 8), offset = number_at<uint64_t>(bytes, 16);
  if (offset <= bytes.size() && records <= (bytes.size() - offset) / datasets::kIndexEntryBytes) {
    const size_t end = offset + records * datasets::kIndexEntryBytes;
    for (size_t at = offset; at < end; at += datasets::kIndexEntryBytes) {
      const auto record = number_at<uint64_t>(bytes, at);
      const auto length = number_at<uint32_t>(bytes, at + 8);
      if (length >= 8 && record <= offset && length <= offset - record)
        set_hash(bytes, record, record + 8, record + length);
    }
    if (bytes.size() - end >= 8) set_hash(bytes, end, offset, end);
    if (bytes.size() - end >= 16) set_hash(bytes, bytes.size() - 8, end + 8, bytes.size() - 8);
  }
  set_hash(bytes, datasets::kHashedHeadBytes, 0, datasets::kHashedHeadBytes);
}

void read_shard(const std::string& path) {
  const datasets::ShardReader shard(path);
  std::vector<uint8_t> memory;
  shard.class_names();
  for (int64_t i = 0; i < shard.size(); ++i) {
    shard.name_of(i);
    fuzz::reads(path, [&] {
      const datasets::PackedRecord record = shard.read(i, memory);
      fuzz::check(record.image.size() + record.mask.size() < memory.size(), "an image larger than its record");
    });
  }
}

void read_manifest(std::span<const uint8_t> text, const std::string& path) {
  for (const datasets::ShardFile& shard : datasets::manifest_of(text, path).shards) {
    fuzz::check(shard.file.find('/') == std::string::npos, "a shard in another folder");
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return fuzz::mutate(data, size, most, seed, [](std::span<uint8_t> bytes) {
    if (!bytes.empty() && bytes[0] != '{') repair(bytes);
  });
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::FileInMemory file;
  if (size > 0 && data[0] == '{') {
    fuzz::reads("manifest.json", [&] { read_manifest({data, size}, "manifest.json"); });
    return 0;
  }
  file.hold({data, size});
  fuzz::reads(file.path(), [] { read_shard(file.path()); });
  return 0;
}
