#include "lockstep/checkpoint/formats/stored_tensor.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/in_order.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/storage_source.h"
#include "lockstep/checkpoint/formats/tensor_geometry.h"

namespace lockstep::checkpoint {
namespace {

constexpr uint64_t kPart = 4u << 20;   // bytes that a thread reads at a time
constexpr uint64_t kBlock = 1u << 20;  // bytes that are checked at a time: they are still in the cache then

// A few: the kernel's copying is bound by memory, and other ranks may read at the same time.
int threads() { return std::clamp(usable_cores(), 1, 4); }

int64_t written_ns(const struct stat& file) {
  constexpr int64_t kSecond = 1'000'000'000;
  return file.st_mtim.tv_sec * kSecond + file.st_mtim.tv_nsec;
}

void release(void* context) { delete static_cast<StoredBytes*>(context); }

TensorGeometry geometry_of(const at::Tensor& tensor) {
  return {tensor.storage_offset(), tensor.sizes().vec(), tensor.strides().vec()};
}

// Whether the elements of `from` lie in the file in the order and form that the memory of `to` has.
bool is_direct(const at::Tensor& to, const at::Tensor& from) {
  if (!to.is_cpu() || to.scalar_type() != from.scalar_type() || to.is_conj() || to.is_neg()) return false;
  if (!to.is_non_overlapping_and_dense() || to.sizes() != from.sizes()) return false;
  for (int64_t d = 0; d < to.dim(); ++d) {
    if (to.size(d) > 1 && to.stride(d) != from.stride(d)) return false;
  }
  return true;
}

// Where elements that are still in a file lie there.
struct Place {
  uint64_t offset = 0, bytes = 0;
};

Place place_of(const at::Tensor& from, const StoredBytes& stored) {
  const auto size = static_cast<uint64_t>(from.itemsize());
  const uint64_t begin = static_cast<uint64_t>(from.storage_offset()) * size;
  return {stored.offset + begin, static_cast<uint64_t>(element_end(geometry_of(from))) * size - begin};
}

// to.copy_(from) where the elements can't go straight to their place.
void copy_through_memory(const at::Tensor& to, const at::Tensor& from, const StoredBytes& stored) {
  const Place place = place_of(from, stored);
  const c10::Storage memory = allocate_storage(static_cast<int64_t>(place.bytes));
  stored.file->read(place.offset, memory.mutable_data(), place.bytes);
  TensorGeometry geometry = geometry_of(from);
  geometry.offset = 0;
  to.copy_(tensor_over(memory, from.scalar_type(), geometry));
}

StoredBytes* bytes_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? stored_bytes(tensor.storage()) : nullptr;
}

using Users = std::unordered_map<StoredBytes*, std::vector<at::Tensor>>;

// Whether `to` can have the memory of `from`, which has its elements alone and which no other tensor has.
bool can_take(const at::Tensor& to, const at::Tensor& from) {
  const auto has_it_alone = [](const at::Tensor& tensor) {
    return tensor.storage_offset() == 0 && tensor.storage().nbytes() == tensor.nbytes() &&
           tensor.storage().use_count() == 1;
  };
  return from.is_cpu() && is_direct(to, from) && has_it_alone(to) && has_it_alone(from);
}

void collect(const Value& value, Users& users) {
  if (const auto* tensor = value.get_if<at::Tensor>()) {
    if (StoredBytes* stored = bytes_of(*tensor)) users[stored].push_back(*tensor);
  } else if (const auto* dict = value.get_if<Dict>()) {
    for (const auto& [key, item] : *dict) collect(item, users);
  } else if (const List* items = value.items()) {
    for (const Value& item : *items) collect(item, users);
  }
}

}  // namespace

// Reads storages block by block, and compares their checksums on the way. One thread.
class CheckedRead {
 public:
  // Without `memory` the bytes go nowhere.
  void run(const StoredBytes& stored, void* memory) {
    if (memory == nullptr && !stored.checksum) return;
    if (memory == nullptr) scratch_.resize(kBlock);
    uint32_t checksum = 0;
    for (uint64_t done = 0; done < stored.bytes; done += kBlock) {
      const uint64_t count = std::min(stored.bytes - done, kBlock);
      char* const to = memory == nullptr ? scratch_.data() : static_cast<char*>(memory) + done;
      read_at(stored.file->fd_.get(), stored.file->path(), stored.offset + done, to, count);
      if (stored.checksum) checksum = libdeflate_crc32(checksum, to, count);
    }
    stored.file->check_unchanged();
    if (!stored.checksum || checksum == *stored.checksum) return;
    throw DataError(stored.file->path(), ": ", printable(stored.name),
                    ": damaged (CRC error); use another copy of the file");
  }

 private:
  std::vector<char> scratch_;
};

StoredFile::StoredFile(std::string path, const InputFile& file)
    : path_(std::move(path)), fd_(fcntl(file.fd.get(), F_DUPFD_CLOEXEC, 0)) {
  struct stat now {};
  if (!fd_ || fstat(fd_.get(), &now) != 0) throw IoError(path_, ": can't be kept open: ", errno_text(errno));
  bytes_ = static_cast<uint64_t>(now.st_size);
  written_ns_ = written_ns(now);
}

void StoredFile::check_unchanged() const {
  struct stat now {};
  if (fstat(fd_.get(), &now) != 0) throw IoError(path_, ": ", errno_text(errno));
  if (static_cast<uint64_t>(now.st_size) == bytes_ && written_ns(now) == written_ns_) return;
  throw DataError(path_, ": was written to while it was read; read it again");
}

void StoredFile::read(uint64_t offset, void* memory, uint64_t bytes) const {
  const Range range{this, offset, static_cast<char*>(memory), bytes};
  read({&range, 1});
}

void StoredFile::read(std::span<const Range> ranges) {
  std::vector<Range> parts;
  for (const Range& range : ranges) {
    for (uint64_t done = 0; done < range.bytes; done += kPart) {
      parts.push_back({range.file, range.offset + done, range.memory + done, std::min(range.bytes - done, kPart)});
    }
  }
  const auto read_part = [&](int64_t index) {
    const Range& part = parts[static_cast<size_t>(index)];
    read_at(part.file->fd_.get(), part.file->path_, part.offset, part.memory, part.bytes);
    return true;
  };
  if (parts.size() < 2 || threads() == 1) {
    for (int64_t i = 0; i < std::ssize(parts); ++i) read_part(i);
  } else {
    in_order<bool>(
        std::ssize(parts), threads(), [&] { return read_part; },
        [](int64_t, Outcome<bool> part) { std::move(part).get(); });
  }
  for (const Range& range : ranges) range.file->check_unchanged();
}

c10::Storage make_stored(StoredBytes bytes) {
  if (bytes.bytes == 0) throw BugError(bytes.name, ": an empty storage lies in no file");
  const auto size = static_cast<int64_t>(bytes.bytes);
  auto* context = new StoredBytes(std::move(bytes));
  c10::DataPtr nowhere(nullptr, context, &release, c10::kCPU);
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), size, std::move(nowhere),
                                                       nullptr, /*resizable=*/false);
  storage->release_data_and_set_meta_custom_data_ptr_error_msg_(
      "a checkpoint's tensor whose elements are still in the file: copy_elements() and bring_into_memory() read them");
  return c10::Storage(std::move(storage));
}

StoredBytes* stored_bytes(const c10::Storage& storage) {
  c10::StorageImpl* impl = storage.unsafeGetStorageImpl();
  const c10::DataPtr& data = impl->_mutable_data_ptr_no_checks();
  return data.get_deleter() == &release ? static_cast<StoredBytes*>(data.get_context()) : nullptr;
}

bool is_stored(const at::Tensor& tensor) { return bytes_of(tensor) != nullptr; }

void bring_into_memory(const at::Tensor& tensor) {
  StoredBytes* stored = bytes_of(tensor);
  if (stored == nullptr) return;
  if (!stored->memory) {
    c10::Storage memory = allocate_storage(static_cast<int64_t>(stored->bytes));
    CheckedRead().run(*stored, memory.mutable_data());
    stored->memory = std::move(memory);
  }
  tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(c10::Storage(*stored->memory));
}

void copy_elements(const at::Tensor& to, const at::Tensor& from) { copy_elements({{to, from}}); }

void copy_elements(const std::vector<std::pair<at::Tensor, at::Tensor>>& all) {
  const at::NoGradGuard no_grad;
  std::vector<StoredFile::Range> ranges;
  std::unordered_set<const void*> written;  // the storages that `ranges` are read into
  const auto waits_for_reading = [&written](const at::Tensor& tensor) {
    return tensor.has_storage() && written.contains(tensor.storage().unsafeGetStorageImpl());
  };
  for (const auto& [to, from] : all) {
    StoredBytes* stored = bytes_of(from);
    if (waits_for_reading(to) || waits_for_reading(from)) {
      StoredFile::read(std::exchange(ranges, {}));
      written.clear();
    }
    if (stored == nullptr) {
      to.copy_(from);
    } else if (stored->memory) {
      bring_into_memory(from);
      to.copy_(from);
    } else if (from.numel() > 0 && is_direct(to, from)) {
      const Place place = place_of(from, *stored);
      ranges.push_back({stored->file.get(), place.offset, static_cast<char*>(to.mutable_data_ptr()), place.bytes});
      written.insert(to.storage().unsafeGetStorageImpl());
      to.unsafeGetTensorImpl()->bump_version();
    } else if (from.numel() > 0) {
      copy_through_memory(to, from, *stored);
    }
  }
  StoredFile::read(ranges);
}

void take_elements(const std::vector<std::pair<at::Tensor, at::Tensor>>& all) {
  std::vector<std::pair<at::Tensor, at::Tensor>> others;
  for (const auto& [to, from] : all) {
    if (!is_stored(from) && can_take(to, from)) {
      to.unsafeGetTensorImpl()->set_storage_keep_dtype(from.storage());
    } else {
      others.emplace_back(to, from);
    }
  }
  copy_elements(others);
}

void verify_stored(const Value& root, uint64_t largest, const std::vector<const Value*>& wanted) {
  Users users, in_memory;
  collect(root, users);
  for (const Value* part : wanted) collect(*part, in_memory);
  std::vector<StoredBytes*> all;
  for (const auto& [stored, tensors] : users) all.push_back(stored);
  std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
  const auto make_worker = [&] {
    return [&all, &in_memory, largest, reader = CheckedRead()](int64_t index) mutable {
      StoredBytes& stored = *all[static_cast<size_t>(index)];
      if (stored.memory) return true;
      std::optional<c10::Storage> memory;
      if (stored.bytes <= largest || in_memory.contains(&stored))
        memory = allocate_storage(static_cast<int64_t>(stored.bytes));
      reader.run(stored, memory ? memory->mutable_data() : nullptr);
      stored.memory = std::move(memory);
      return true;
    };
  };
  in_order<bool>(std::ssize(all), threads(), make_worker, [](int64_t, Outcome<bool> read) { std::move(read).get(); });
  for (StoredBytes* stored : all) {
    if (!stored->memory) continue;
    // The last of these tensors to leave the storage ends it, and `stored` with it.
    for (const at::Tensor& tensor : users.at(stored)) bring_into_memory(tensor);
  }
}

}  // namespace lockstep::checkpoint
