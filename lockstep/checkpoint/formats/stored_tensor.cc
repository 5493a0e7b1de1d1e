#include "lockstep/checkpoint/formats/stored_tensor.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/checkpoint/files/large_pages.h"
#include "lockstep/checkpoint/files/page_cache.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/range_reader.h"
#include "lockstep/checkpoint/formats/storage_source.h"
#include "lockstep/checkpoint/formats/tensor_geometry.h"

namespace lockstep::checkpoint {
namespace {

constexpr uint64_t kPage = 4096;  // of the system's copy of a file

int64_t written_ns(const struct stat& file) {
  constexpr int64_t kSecond = 1'000'000'000;
  return file.st_mtim.tv_sec * kSecond + file.st_mtim.tv_nsec;
}

// Whether the system has few of some bytes of the file in memory: those near what was read before may be there.
bool lies_on_disk(int fd, uint64_t bytes) {
  constexpr uint64_t kSamples = 8;
  uint64_t there = 0;
  for (uint64_t i = 0; i < kSamples; ++i) {
    if (is_in_page_cache(fd, bytes / kSamples * i + bytes / kSamples / 2)) ++there;
  }
  return there < kSamples / 2;
}

// Whether no other rank of this machine reads the same file: the disk is read once for all of them.
bool reads_alone() {
  constexpr std::array kRanks = {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                 "PADDLE_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE"};
  return std::ranges::all_of(kRanks, [](const char* name) {
    const std::string ranks = env(name).value_or("1");
    return ranks == "1" || ranks.starts_with("1(x");  // "1(x4)", of four nodes
  });
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

StoredBytes* bytes_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? stored_bytes(tensor.storage()) : nullptr;
}

// Whether the tensor has all bytes of its storage.
bool has_all(const at::Tensor& tensor, const StoredBytes& stored) {
  return tensor.numel() > 0 && place_of(tensor, stored).bytes == stored.bytes;
}

// Fills the floating-point destinations with NaN, for some of their numbers may be a file's and others their own.
void make_useless(const std::vector<std::pair<at::Tensor, at::Tensor>>& all) noexcept {
  for (const auto& [to, from] : all) {
    try {
      if (to.is_floating_point() || to.is_complex()) to.fill_(std::numeric_limits<double>::quiet_NaN());
    } catch (const std::exception&) {  // of a device, for example: what ended the copying is thrown
    }
  }
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

// to.copy_(from) where the elements can't go straight to their place.
void copy_through_memory(const at::Tensor& to, const at::Tensor& from, StoredBytes& stored) {
  const Place place = place_of(from, stored);
  const c10::Storage memory = allocate_storage(static_cast<int64_t>(place.bytes));
  RangeReader reader;
  reader.add(stored, place.offset, place.bytes, memory.mutable_data());
  reader.run();
  TensorGeometry geometry = geometry_of(from);
  geometry.offset = 0;
  to.copy_(tensor_over(memory, from.scalar_type(), geometry));
}

void copy_in_order(const std::vector<std::pair<at::Tensor, at::Tensor>>& all) {
  RangeReader reader;
  std::unordered_set<const void*> written;  // the storages that the reader is to read into
  const auto waits_for_reading = [&written](const at::Tensor& tensor) {
    return tensor.has_storage() && written.contains(tensor.storage().unsafeGetStorageImpl());
  };
  for (const auto& [to, from] : all) {
    StoredBytes* stored = bytes_of(from);
    if (waits_for_reading(to) || waits_for_reading(from)) {
      reader.run();
      written.clear();
    }
    if (stored == nullptr) {
      to.copy_(from);
    } else if (stored->memory || !(stored->is_checked || has_all(from, *stored))) {
      reader.run();  // it may be to read the storage that ends here
      written.clear();
      bring_into_memory(from);
      to.copy_(from);
    } else if (from.numel() > 0 && is_direct(to, from)) {
      const Place place = place_of(from, *stored);
      reader.add(*stored, place.offset, place.bytes, to.mutable_data_ptr());
      written.insert(to.storage().unsafeGetStorageImpl());
      to.unsafeGetTensorImpl()->bump_version();
    } else if (from.numel() > 0) {
      copy_through_memory(to, from, *stored);
    }
  }
  reader.run();
}

}  // namespace

void StoredFile::read(uint64_t offset, void* memory, uint64_t bytes) const {
  read_at(fd_.get(), path_, offset, memory, bytes);
}

Descriptor StoredFile::open_direct() const {
  if (!reads_past_memory_) return {};
  return Descriptor(open(cat("/proc/self/fd/", fd_.get()).c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
}

void StoredFile::read_block(uint64_t offset, void* memory, uint64_t bytes, const Descriptor& direct) const {
  const uint64_t wanted = std::min(bytes, bytes_ - std::min(offset, bytes_));
  uint64_t done = 0;
  while (direct && done < wanted) {
    const auto count =
        pread(direct.get(), static_cast<char*>(memory) + done, bytes - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;  // an error, the end or a file system without: read() finds out which
    done += static_cast<uint64_t>(count);
  }
  if (done < wanted) read(offset + done, static_cast<char*>(memory) + done, wanted - done);
}

void StoredBytes::compare(uint32_t sum) const {
  if (!checksum || sum == *checksum) return;
  throw DataError(file->path(), ": ", printable(name), ": damaged (CRC error); use another copy of the file");
}

StoredFile::StoredFile(std::string path, const InputFile& file)
    : path_(std::move(path)), fd_(fcntl(file.fd.get(), F_DUPFD_CLOEXEC, 0)) {
  struct stat now {};
  if (!fd_ || fstat(fd_.get(), &now) != 0) throw IoError(path_, ": can't be kept open: ", errno_text(errno));
  bytes_ = static_cast<uint64_t>(now.st_size);
  written_ns_ = written_ns(now);
  was_on_disk_ = lies_on_disk(fd_.get(), bytes_);
  reads_past_memory_ = was_on_disk_ && has_large_pages() && reads_alone();
}

bool StoredFile::has_in_memory(uint64_t offset) const { return is_in_page_cache(fd_.get(), offset); }

void StoredFile::forget(uint64_t offset, uint64_t bytes) const {
  if (!was_on_disk_) return;
  const uint64_t begin = offset / kPage * kPage, end = (offset + bytes + kPage - 1) / kPage * kPage;
  posix_fadvise(fd_.get(), static_cast<off_t>(begin), static_cast<off_t>(end - begin), POSIX_FADV_DONTNEED);
}

void StoredFile::check_unchanged() const {
  struct stat now {};
  if (fstat(fd_.get(), &now) != 0) throw IoError(path_, ": ", errno_text(errno));
  if (static_cast<uint64_t>(now.st_size) == bytes_ && written_ns(now) == written_ns_) return;
  throw DataError(path_, ": was written to while it was read; read it again");
}

c10::Storage make_stored(StoredBytes bytes) {
  if (bytes.bytes == 0) throw BugError(bytes.name, ": an empty storage lies in no file");
  if (!bytes.checksum) bytes.is_checked = true;
  bytes.is_cached = !bytes.file->was_on_disk();
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
    RangeReader reader;
    reader.add(*stored, memory.mutable_data());
    reader.run();
    stored->memory = std::move(memory);
  }
  tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(c10::Storage(*stored->memory));
}

void copy_elements(const at::Tensor& to, const at::Tensor& from) { copy_elements({{to, from}}); }

void copy_elements(const std::vector<std::pair<at::Tensor, at::Tensor>>& all) {
  const at::NoGradGuard no_grad;
  try {
    copy_in_order(all);
  } catch (...) {
    make_useless(all);
    throw;
  }
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

void verify_stored(const Value& root, uint64_t largest, const std::vector<const Value*>& wanted, bool on_the_way) {
  Users users, in_memory;
  collect(root, users);
  for (const Value* part : wanted) collect(*part, in_memory);
  const auto remains = [&](StoredBytes* stored) { return stored->bytes > largest && !in_memory.contains(stored); };
  std::vector<StoredBytes*> all, waiting;
  for (const auto& [stored, tensors] : users) {
    const bool can_wait = on_the_way && tensors.size() == 1 && has_all(tensors.front(), *stored);
    if (!remains(stored) || !(stored->is_checked || can_wait)) all.push_back(stored);
    if (can_wait && remains(stored)) waiting.push_back(stored);
  }
  std::sort(all.begin(), all.end(), [](const auto* a, const auto* b) {
    return std::pair(a->file.get(), a->offset) < std::pair(b->file.get(), b->offset);
  });
  constexpr uint64_t kHeader = 512;  // of an entry, which has been read
  for (const auto& [stored, tensors] : users)
    stored->file->forget(stored->offset - std::min(stored->offset, kHeader), kHeader);
  RangeReader reader;
  std::vector<std::pair<StoredBytes*, c10::Storage>> read;
  for (StoredBytes* stored : all) {
    if (remains(stored)) {
      reader.add(*stored, nullptr, /*is_read_again=*/true);
    } else if (!stored->memory) {
      read.emplace_back(stored, allocate_storage(static_cast<int64_t>(stored->bytes)));
      reader.add(*stored, read.back().second.mutable_data());
    }
  }
  reader.run();
  for (auto& [stored, memory] : read) stored->memory = std::move(memory);
  for (StoredBytes* stored : all) {
    stored->is_checked = true;
    if (!remains(stored) || stored->is_cached) continue;
    // It has been read, and is there unless it is larger than memory.
    stored->is_cached = stored->file->has_in_memory(stored->offset + stored->bytes / 2);
  }
  for (const auto& [stored, memory] : read) {
    if (!waiting.empty()) stored->file->forget(stored->offset, stored->bytes);
  }
  for (StoredBytes* stored : all) {
    if (!stored->memory) continue;
    // The last of these tensors to leave the storage ends it, and `stored` with it.
    for (const at::Tensor& tensor : users.at(stored)) bring_into_memory(tensor);
  }
}

}  // namespace lockstep::checkpoint
