// Tensors whose elements are still in a file. They have shape, strides and storage as any other; the storage has no
// memory. Elements are read straight to where they are wanted, so that a checkpoint is never in memory twice.
//
// Whoever asks such a storage for its data, as every operation of libtorch does, gets an error, never zeros. Readers
// make these tensors (safetensors_reader.h, pt_reader.h); read_checkpoint.h says which of a file's remain in it.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/shared_memory.h"
#include "lockstep/checkpoint/formats/file_reader.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// A file that storages lie in. It stays open as long as one of them needs it, also where its name is given to another.
// Any thread.
class StoredFile {
 public:
  // Takes a descriptor of its own. Throws IoError.
  StoredFile(std::string path, const InputFile& file);

  const std::string& path() const { return path_; }
  // Reads [offset, offset + bytes). Throws as read_at() does.
  void read(uint64_t offset, void* memory, uint64_t bytes) const;
  // The same file, whatever has its name now, for reading past the system's memory (O_DIRECT). Nothing where that
  // can't be, or takes longer, or where other ranks of this machine read the file, too.
  Descriptor open_direct() const;
  // Reads [offset, offset + bytes), or as far as the file goes, into memory for all of them. `direct`: open_direct()'s,
  // or nothing. With it offset, bytes and memory are multiples of kDirectBlock (large_pages.h). Throws as read_at()
  // does.
  void read_block(uint64_t offset, void* memory, uint64_t bytes, const Descriptor& direct) const;
  // Throws DataError if somebody has written to the file since this was made.
  void check_unchanged() const;
  // Lets the system's copy of the range go, unless much of the file was there before this was made. Single pages that
  // are there make it read what is around them by single pages, too, which takes a fifth longer.
  void forget(uint64_t offset, uint64_t bytes) const;
  bool was_on_disk() const { return was_on_disk_; }  // alone, when this was made, as far as some samples tell
  bool has_in_memory(uint64_t offset) const;         // whether the system has a copy of the byte now

 private:
  std::string path_;
  Descriptor fd_;
  uint64_t bytes_ = 0;
  int64_t written_ns_ = 0;  // when it was last written to
  bool was_on_disk_ = false, reads_past_memory_ = false;
};

// Where a storage's bytes lie.
struct StoredBytes {
  std::shared_ptr<const StoredFile> file;
  std::string name;  // of the entry or tensor, for messages
  uint64_t offset = 0;
  uint64_t bytes = 0;                       // never 0
  std::optional<uint32_t> checksum = {};    // CRC-32 of the bytes, where the format has one
  std::optional<c10::Storage> memory = {};  // what the bytes were read into, once a tensor has asked for them
  bool is_checked = false;                  // the checksum has been compared; else it is as the bytes are read
  bool is_cached = false;                   // the system has a copy in memory, as far as we know

  // Throws DataError if the bytes' CRC-32 is another than the checksum.
  void compare(uint32_t sum) const;
};

// A storage without memory.
c10::Storage make_stored(StoredBytes bytes);

// Where the storage's bytes lie; nullptr if they are in memory. Valid as long as the storage.
StoredBytes* stored_bytes(const c10::Storage& storage);
bool is_stored(const at::Tensor& tensor);

// Reads the tensor's storage into memory, whole, and compares its checksum; does nothing if it is there. Tensors that
// share a storage in the file share it in memory. Throws DataError, IoError.
void bring_into_memory(const at::Tensor& tensor);

// to.copy_(from). Elements that are still in a file are read straight into `to`, if it is a dense CPU tensor of equal
// dtype and strides; else through memory for this one tensor. Throws as bring_into_memory() does; the destinations of
// floating-point numbers are NaN then, for a training that goes on from half of a file must not look like one.
void copy_elements(const at::Tensor& to, const at::Tensor& from);
// The same of pairs {to, from}, one after the other as it seems; a few threads share the reading.
void copy_elements(const std::vector<std::pair<at::Tensor, at::Tensor>>& all);

// The same, where `to` may get the memory of `from` in place of its elements: for new tensors that nothing else shares,
// and a `from` that nobody changes afterwards.
void take_elements(const std::vector<std::pair<at::Tensor, at::Tensor>>& all);

constexpr uint64_t kEverything = std::numeric_limits<uint64_t>::max();

// Brings the tree's storages of at most `largest` bytes into memory, and all of `wanted`, parts of the tree; compares
// all checksums, by a few threads. `on_the_way`: of storages that remain in the file and have one tensor, which has all
// of their bytes, checksums are compared as the elements are read. Throws as bring_into_memory() does.
void verify_stored(const Value& root, uint64_t largest, const std::vector<const Value*>& wanted = {},
                   bool on_the_way = false);

}  // namespace lockstep::checkpoint
