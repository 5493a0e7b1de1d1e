#include "lockstep/checkpoint/formats/safetensors_index.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/folder_entries.h"
#include "lockstep/checkpoint/formats/bounded_json.h"
#include "lockstep/checkpoint/formats/byte_cursor.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/safetensors_header.h"
#include "lockstep/checkpoint/formats/safetensors_reader.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxShards = 1024, kDepth = 8;  // other parts of an index than weight_map may hold anything
constexpr std::string_view kWeights = "weight_map", kIndexName = "model.safetensors.index.json";
constexpr std::string_view kSuffix = ".safetensors";

struct Index {
  std::vector<std::pair<std::string, size_t>> tensors;  // with the number of the shard
  std::vector<std::string> shards;                      // in the order in which they are named first
};

class IndexVisitor : public JsonVisitor {
 public:
  Index index;
  bool has_weights = false;

  void object(const Path& path) override {
    if (is_weights(path)) has_weights = true;
    if (path.size() > 1) refuse_in_weights(path);
  }
  void array(const Path& path) override { refuse_in_weights(path); }
  void number(const Path& path, uint64_t) override { refuse_in_weights(path); }
  void other(const Path& path, std::string_view) override { refuse_in_weights(path); }
  void text(const Path& path, const std::string& file) override {
    if (path.size() != 2 || path[0] != kWeights) return refuse_in_weights(path);
    if (index.tensors.size() == kMaxSafetensorsTensors) {
      throw Fault{cat("more than ", kMaxSafetensorsTensors, " tensors")};
    }
    index.tensors.emplace_back(path[1], shard(path[1], file));
  }

 private:
  static bool is_weights(const Path& path) { return path.size() == 1 && path[0] == kWeights; }
  static void refuse_in_weights(const Path& path) {
    if (!path.empty() && path[0] == kWeights) throw Fault{cat(path_text(path), ": no name of a file")};
  }

  size_t shard(const std::string& tensor, const std::string& file) {
    const auto [found, is_new] = numbers_.try_emplace(file, index.shards.size());
    if (!is_new) return found->second;
    // No control characters either, for the name stands in messages.
    const auto is_path_or_control = [](unsigned char each) {
      return each == '/' || each == '\\' || each < ' ' || each == 0x7f;
    };
    const bool is_base =
        std::none_of(file.begin(), file.end(), is_path_or_control) && file.ends_with(kSuffix) && file != kSuffix;
    if (!is_base)
      throw Fault{cat(printable(tensor), ": lies in ", printable(file), ", which is no name of a .safetensors")};
    if (index.shards.size() == kMaxShards) throw Fault{cat("more than ", kMaxShards, " files")};
    index.shards.push_back(file);
    return found->second;
  }

  std::unordered_map<std::string, size_t> numbers_;
};

Index read_index(const std::string& path, const InputFile& file) {
  if (file.bytes > kMaxSafetensorsHeader) throw DataError(path, ": an index of ", human_bytes(file.bytes));
  std::string json(file.bytes, '\0');
  read_at(file.fd.get(), path, 0, json.data(), json.size());
  IndexVisitor visitor;
  try {
    read_json(json, kDepth, visitor);
  } catch (const Fault& fault) {
    throw DataError(path, ": ", fault.text);
  }
  if (!visitor.has_weights || visitor.index.tensors.empty()) {
    throw DataError(path, ": JSON, but no index of safetensors: it has no \"weight_map\" of tensors");
  }
  return std::move(visitor.index);
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

// A shard's path. Links are followed where they stay in the folder, or lead to that of the index: the hub's cache keeps
// all files of a model in one folder, and links to them in another.
std::string locate(const fs::path& index, const std::string& name) {
  std::error_code error;
  const fs::path named = folder_of(index) / name, real = fs::weakly_canonical(named, error);
  const fs::path own = fs::canonical(folder_of(index), error), of_index = fs::canonical(index, error);
  const bool stays = real.parent_path() == own || real.parent_path() == of_index.parent_path();
  if (!stays)
    throw DataError(named.string(), ": a link that leads out of the index's folder; put the file itself there");
  return named.string();
}

Value open_shard(const std::string& path) {
  const InputFile file = open_input(path);
  if (!is_safetensors(start_of(path, file))) throw DataError(path, ": no safetensors file");
  return open_safetensors(path, file);
}

void check_same(const std::string& path, const std::string& shard, const std::vector<std::string>& listed,
                const Dict& held) {
  for (const std::string& name : listed) {
    if (held.contains(name)) continue;
    throw DataError(path, ": ", printable(name), ": ", printable(shard), " holds no such tensor");
  }
  size_t tensors = 0;
  for (const auto& [key, value] : held) tensors += value.is_tensor();
  if (tensors == listed.size()) return;
  throw DataError(path, ": ", printable(shard), " holds ", tensors, " tensors, and the index lists ", listed.size(),
                  " of it");
}

}  // namespace

bool is_safetensors_index(std::string_view start) { return start.starts_with('{'); }

Value open_safetensors_index(const std::string& path, const InputFile& file) {
  const Index index = read_index(path, file);
  std::vector<std::vector<std::string>> listed(index.shards.size());
  for (const auto& [name, shard] : index.tensors) listed[shard].push_back(name);
  std::vector<Value> shards;
  for (size_t i = 0; i < index.shards.size(); ++i) {
    try {
      shards.push_back(open_shard(locate(path, index.shards[i])));
    } catch (const DataError& error) {
      throw DataError(path, ": ", error.what());
    }
    check_same(path, index.shards[i], listed[i], *shards.back().get_if<Dict>());
  }
  Dict root;
  const Value* metadata = shards.front().get_if<Dict>()->find(std::string(kMetadata));
  if (metadata != nullptr) root.set(std::string(kMetadata), *metadata);
  for (const auto& [name, shard] : index.tensors) root.set(name, *shards[shard].get_if<Dict>()->find(name));
  return root;
}

std::optional<std::string> find_safetensors(const std::string& folder) {
  std::error_code error;
  const fs::path index = fs::path(folder) / kIndexName;
  if (fs::exists(index, error)) return index.string();
  std::vector<std::string> found;
  for (const fs::path& path : entries_of(folder)) {
    if (path.extension() == kSuffix) found.push_back(path.string());
  }
  if (found.size() > 1) {
    throw DataError(folder, ": has ", found.size(), " .safetensors files and no ", kIndexName, "; name one of them");
  }
  return found.empty() ? std::nullopt : std::optional(found[0]);
}

}  // namespace lockstep::checkpoint
