#include "lockstep/checkpoint/formats/pickle_bytes.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {
namespace {

constexpr uint64_t kBlock = 4u << 10;  // read at a time
constexpr uint64_t kMany = 64u << 10;  // bytes that stay in the file

}  // namespace

// Memory that nobody touches takes none: what stays in the file has its place in it.
PickleBytes::PickleBytes(std::shared_ptr<const StoredFile> file, uint64_t bytes) : file_(std::move(file)) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw IoError(file_->path(), ": no address space for ", human_bytes(bytes), ": ", errno_text(errno));
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  bytes_ = {static_cast<const char*>(memory), bytes};
  is_there_.resize((bytes + kBlock - 1) / kBlock);
}

PickleBytes::~PickleBytes() {
  if (file_ != nullptr) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

void PickleBytes::fetch(uint64_t offset, uint64_t length) const {
  const uint64_t first = offset / kBlock, end = (offset + length + kBlock - 1) / kBlock;
  for (uint64_t block = first; block < end; ++block) {
    if (is_there_[block]) continue;
    uint64_t after = block;
    while (after < end && !is_there_[after]) is_there_[after++] = true;
    const uint64_t from = block * kBlock, to = std::min<uint64_t>(after * kBlock, bytes_.size());
    file_->read(from, const_cast<char*>(bytes_.data()) + from, to - from);
    block = after - 1;
  }
  there_begin_ = first * kBlock;
  there_end_ = end * kBlock;
}

void PickleBytes::copy(uint64_t offset, uint64_t length, char* memory) const {
  if (file_ != nullptr && length >= kBlock) return file_->read(offset, memory, length);
  at(offset, length).copy(memory, length);
}

std::optional<c10::Storage> PickleBytes::left_in_file(uint64_t offset, uint64_t length) const {
  if (file_ == nullptr || length < kMany) return std::nullopt;
  return make_stored({.file = file_, .name = cat("the array at byte ", offset), .offset = offset, .bytes = length});
}

}  // namespace lockstep::checkpoint
