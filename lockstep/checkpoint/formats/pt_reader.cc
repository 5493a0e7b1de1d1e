#include "lockstep/checkpoint/formats/pt_reader.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/file_reader.h"
#include "lockstep/checkpoint/formats/legacy_reader.h"
#include "lockstep/checkpoint/formats/pickle_reader.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/zip_archive.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kPickleName = "data.pkl";

// The entries data/0, data/1 … of an archive. Each is read once, when the first tensor over it is built.
class ZipStorages : public StorageSource {
 public:
  ZipStorages(ZipArchive& archive, std::string path, std::string prefix, uint64_t file_bytes)
      : archive_(archive), path_(std::move(path)), prefix_(std::move(prefix)), left_(file_bytes + kMaxPickleBytes) {}

  c10::Storage storage(const StorageRequest& request) override {
    const std::string name = cat(prefix_, "data/", request.key);
    const auto known = storages_.find(name);
    if (known != storages_.end() && known->second.nbytes() == static_cast<size_t>(request.bytes)) return known->second;
    const uint64_t bytes = archive_.size(name);
    if (known != storages_.end() || bytes != static_cast<uint64_t>(request.bytes)) {
      throw DataError(path_, ": ", printable(name), ": holds ", bytes, " bytes, its tensors need ", request.bytes);
    }
    // Entries that overlap could make a small file fill any memory.
    if (bytes > left_) throw DataError(path_, ": its tensors are larger than the file");
    left_ -= bytes;
    c10::Storage storage = allocate_storage(request.bytes);
    archive_.read_into(name, storage.mutable_data(), bytes);
    return storages_.emplace(name, std::move(storage)).first->second;
  }

 private:
  ZipArchive& archive_;
  std::string path_;
  std::string prefix_;
  uint64_t left_;
  std::unordered_map<std::string, c10::Storage> storages_;
};

// The prefix "archive/" of "archive/data.pkl", with which the names of all other entries begin as well.
std::string find_prefix(const ZipArchive& archive, const std::string& path) {
  std::string prefix;
  for (const std::string& name : archive.names()) {
    const size_t slash = name.find('/');
    if (slash == std::string::npos || std::string_view(name).substr(slash + 1) != kPickleName) continue;
    if (!prefix.empty()) throw DataError(path, ": holds more than one ", kPickleName);
    prefix = name.substr(0, slash + 1);
  }
  if (prefix.empty()) throw DataError(path, ": a zip archive, but not a checkpoint: it has no ", kPickleName);
  return prefix;
}

Value read_zip_pt(const std::string& path, uint64_t file_bytes) {
  ZipArchive archive(path);
  const std::string prefix = find_prefix(archive, path);
  if (archive.contains(prefix + "byteorder")) {
    const std::string order = archive.read(prefix + "byteorder", 16);
    if (order != "little") {
      throw DataError(path, ": byte order ", printable(order), "; save it again on a little-endian machine");
    }
  }
  ZipStorages storages(archive, path, prefix, file_bytes);
  const std::string pickle = archive.read(prefix + std::string(kPickleName), kMaxPickleBytes);
  return read_pickle(pickle, {.name = cat(path, ": ", kPickleName),
                              .storages = &storages,
                              .max_tensor_bytes = max_tensor_bytes(file_bytes)})
      .value;
}

}  // namespace

Value read_pt(const std::string& path) {
  const InputFile file = open_input(path);
  std::string start(std::min<uint64_t>(file.bytes, 64), '\0');
  read_at(file.fd.get(), path, 0, start.data(), start.size());
  if (start.starts_with("PK\x03\x04")) return read_zip_pt(path, file.bytes);
  if (is_legacy_pt(start)) return read_legacy_pt(path, file);
  throw DataError(path, ": not a checkpoint of torch.save: it starts with \"", printable(start, 24), "\"");
}

}  // namespace lockstep::checkpoint
