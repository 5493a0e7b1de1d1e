#include "lockstep/checkpoint/formats/pt_reader.h"

#include <memory>
#include <unordered_map>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/file_reader.h"
#include "lockstep/checkpoint/formats/legacy_reader.h"
#include "lockstep/checkpoint/formats/pickle_reader.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"
#include "lockstep/checkpoint/formats/zip_archive.h"
#include "lockstep/checkpoint/formats/zip_check.h"
#include "lockstep/checkpoint/formats/zip_directory.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::string_view kPickleName = "data.pkl";

// The entries data/0, data/1 … of an archive. They remain in the file; compressed ones are unpacked, each once.
class ZipStorages : public StorageSource {
 public:
  ZipStorages(ZipArchive& archive, std::string path, std::string prefix, const InputFile& file)
      : archive_(archive),
        path_(std::move(path)),
        prefix_(std::move(prefix)),
        left_(file.bytes + kMaxPickleBytes),
        directory_(path_, file),
        file_(std::make_shared<StoredFile>(path_, file)) {}

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
    return storages_.emplace(name, open(name, bytes)).first->second;
  }

 private:
  c10::Storage open(const std::string& name, uint64_t bytes) {
    const auto content = directory_.find(name);
    if (content && content->bytes == bytes && bytes > 0) {
      return make_stored(
          {.file = file_, .name = name, .offset = content->offset, .bytes = bytes, .checksum = content->checksum});
    }
    c10::Storage storage = allocate_storage(static_cast<int64_t>(bytes));
    archive_.read_into(name, storage.mutable_data(), bytes);
    return storage;
  }

  ZipArchive& archive_;
  std::string path_;
  std::string prefix_;
  uint64_t left_;
  ZipDirectory directory_;
  std::shared_ptr<const StoredFile> file_;
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

bool is_zip(std::string_view start) { return start.starts_with("PK\x03\x04"); }

Value open_zip_pt(const std::string& path, const InputFile& file, const ReadOptions& options) {
  MemoryBudget budget(kReadingMemory);
  check_zip_directory(path, file, budget);
  ZipArchive archive(path, file);
  const std::string prefix = find_prefix(archive, path);
  if (archive.contains(prefix + "byteorder")) {
    const std::string order = archive.read(prefix + "byteorder", 16);
    if (order != "little") {
      throw DataError(path, ": byte order ", printable(order), "; save it again on a little-endian machine");
    }
  }
  ZipStorages storages(archive, path, prefix, file);
  const std::string pickle = archive.read(prefix + std::string(kPickleName), kMaxPickleBytes);
  return read_pickle(pickle, {.name = cat(path, ": ", kPickleName),
                              .storages = &storages,
                              .max_tensor_bytes = max_tensor_bytes(file.bytes),
                              .budget = &budget,
                              .ignore_unknown = options.ignore_unknown})
      .value;
}

}  // namespace

bool is_pt(std::string_view start) { return is_zip(start) || is_legacy_pt(start); }

Value open_pt(const std::string& path, const InputFile& file, const ReadOptions& options) {
  return is_zip(start_of(path, file)) ? open_zip_pt(path, file, options) : open_legacy_pt(path, file, options);
}

Value read_pt(const std::string& path, const ReadOptions& options) {
  const InputFile file = open_input(path);
  const std::string start = start_of(path, file);
  if (!is_pt(start)) throw DataError(path, ": not a checkpoint of torch.save: it starts with ", quoted_start(start));
  Value root = open_pt(path, file, options);
  verify_stored(root, kEverything);
  return root;
}

}  // namespace lockstep::checkpoint
