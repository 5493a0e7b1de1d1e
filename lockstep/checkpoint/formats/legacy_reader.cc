#include "lockstep/checkpoint/formats/legacy_reader.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/byte_cursor.h"
#include "lockstep/checkpoint/formats/file_reader.h"
#include "lockstep/checkpoint/formats/pickle_reader.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"
#include "lockstep/checkpoint/formats/value_view.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::string_view_literals;

constexpr int64_t kProtocolVersion = 1001;

// The length of the first pickle, or 0 if it is not there. It is the number 0x1950a86a20f9469cfc6c, which has more than
// 64 bits.
size_t magic_length(std::string_view start) {
  constexpr auto kMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."sv;
  constexpr size_t kProtocol = 2;  // PROTO and its number
  constexpr size_t kFrame = 9;     // of protocol 4
  if (start.substr(0, 1) != "\x80") return 0;
  for (const size_t skipped : {kProtocol, kProtocol + kFrame}) {
    if (start.size() > skipped && start.substr(skipped, kMagic.size()) == kMagic) return skipped + kMagic.size();
  }
  return 0;
}

// Storages by key. The tensors over them are built before it is known where they lie: the file has them last.
class LegacyStorages : public StorageSource {
 public:
  LegacyStorages(std::string path, const InputFile& file)
      : path_(std::move(path)), left_(file.bytes), file_(std::make_shared<StoredFile>(path_, file)) {}

  c10::Storage storage(const StorageRequest& request) override {
    const auto [found, is_new] = storages_.try_emplace(std::string(request.key));
    const auto bytes = static_cast<uint64_t>(request.bytes);
    if (is_new) {
      if (bytes > left_) throw DataError(path_, ": a tensor of ", human_bytes(bytes), ", more than the file holds");
      left_ -= bytes;
      c10::Storage storage = bytes == 0
                                 ? allocate_storage(0)
                                 : make_stored({.file = file_, .name = cat("storage ", request.key), .bytes = bytes});
      found->second = {std::move(storage), false};
    } else if (found->second.storage.nbytes() != bytes) {
      throw DataError(path_, ": storage ", printable(request.key), " has two sizes");
    }
    return found->second.storage;
  }

  // Places the storages in the order of `keys`, from `offset` on. Each is its number of elements, then its bytes.
  void place(const InputFile& file, uint64_t offset, const List& keys) {
    for (const Value& key : keys) {
      const auto* name = key.get_if<std::string>();
      const auto found = name == nullptr ? storages_.end() : storages_.find(*name);
      if (found == storages_.end() || found->second.placed) {
        throw DataError(path_, ": its list of storages does not fit its tensors");
      }
      auto& [storage, placed] = found->second;
      int64_t elements = 0;
      read_at(file.fd.get(), path_, offset, &elements, sizeof elements);
      check_elements(*name, elements, storage.nbytes());
      offset += sizeof elements;
      if (storage.nbytes() > file.bytes - offset) throw DataError(path_, ": cut short in storage ", printable(*name));
      if (StoredBytes* stored = stored_bytes(storage)) stored->offset = offset;
      placed = true;
      offset += storage.nbytes();
    }
    for (const auto& [key, entry] : storages_) {
      if (!entry.placed) throw DataError(path_, ": storage ", printable(key), " is missing");
    }
  }

 private:
  struct Entry {
    c10::Storage storage;
    bool placed = false;
  };

  // The file does not repeat the element's size here: it is 1 to 16 bytes.
  void check_elements(const std::string& key, int64_t elements, size_t bytes) const {
    const bool fits = elements == 0 ? bytes == 0
                                    : elements > 0 && bytes % static_cast<uint64_t>(elements) == 0 &&
                                          bytes / static_cast<uint64_t>(elements) <= 16 && bytes > 0;
    if (!fits) {
      throw DataError(path_, ": storage ", printable(key), " has ", elements, " elements, its tensors need ", bytes,
                      " bytes");
    }
  }

  std::string path_;
  uint64_t left_;
  std::shared_ptr<const StoredFile> file_;
  std::unordered_map<std::string, Entry> storages_;
};

}  // namespace

bool is_legacy_pt(std::string_view start) { return magic_length(start) > 0; }

Value open_legacy_pt(const std::string& path, const InputFile& file, const ReadOptions& options) {
  std::string head(std::min<uint64_t>(file.bytes, kMaxPickleBytes), '\0');
  read_at(file.fd.get(), path, 0, head.data(), head.size());
  size_t offset = magic_length(head);
  LegacyStorages storages(path, file);
  MemoryBudget budget(kReadingMemory);  // of all five
  const auto next = [&](std::string name, StorageSource* source) {
    PickleResult result =
        read_pickle(std::string_view(head).substr(offset), {.name = cat(path, ": ", name, " (from byte ", offset, ")"),
                                                            .storages = source,
                                                            .max_tensor_bytes = max_tensor_bytes(file.bytes),
                                                            .budget = &budget,
                                                            .ignore_unknown = options.ignore_unknown});
    offset += result.bytes_read;
    return std::move(result.value);
  };

  const Value version = next("protocol version", nullptr);
  if (ValueView(version, path).integer() != kProtocolVersion) {
    throw DataError(path, ": a file of an unknown version; only ", kProtocolVersion, " is known");
  }
  const Value system = next("system description", nullptr);
  if (!ValueView(system, path)["little_endian"].boolean()) {
    throw DataError(path, ": written on a big-endian machine; save it again on a little-endian one");
  }
  Value object = next("object", &storages);
  const Value keys = next("list of storages", nullptr);
  const auto* list = keys.get_if<List>();
  if (list == nullptr) throw DataError(path, ": its list of storages is ", keys.kind());
  storages.place(file, offset, *list);
  return object;
}

}  // namespace lockstep::checkpoint
