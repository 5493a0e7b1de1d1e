#include "lockstep/checkpoint/formats/range_reader.h"

#include <libdeflate.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/in_order.h"
#include "lockstep/checkpoint/files/byte_sums.h"
#include "lockstep/checkpoint/files/stream_copy.h"

namespace lockstep::checkpoint {
namespace {

constexpr uint64_t kPart = 1u << 20;     // bytes that a thread takes at a time
constexpr uint64_t kPiece = 128u << 10;  // of these, that it copies and sums up at a time: they are in its cache then

// Threads that read a disk beside the one that sums up, if any. Few: they share the kernel's read-ahead, and other
// ranks may read at the same time.
int readers() { return std::min(usable_cores() / 2, 2); }

// Threads that copy from the system's memory, if any.
int copiers() {
  const int cores = std::min(usable_cores(), 4);
  return cores > 1 ? cores : 0;
}

}  // namespace

void RangeReader::add(const StoredBytes& stored, uint64_t offset, uint64_t bytes, void* memory) {
  for (uint64_t done = 0, count = 0; done < bytes; done += count) {
    const uint64_t from = offset + done;
    count = std::min(bytes - done, kPart - from % kPart);  // whole pages of the system's
    char* const to = memory == nullptr ? nullptr : static_cast<char*>(memory) + done;
    parts_.push_back({&stored, from, to, count, done + count == bytes});
  }
}

void RangeReader::run() {
  const std::vector<Part> parts = std::exchange(parts_, {});
  const auto part_at = [&](int64_t index) -> const Part& { return parts[static_cast<size_t>(index)]; };
  uint32_t sum = 0;  // of the parts of one storage
  const auto take = [&](const Part& part, uint32_t of_part) {
    if (!part.stored->is_checked) sum = joined_crc(sum, of_part, part.bytes);
    if (!part.is_last) return;
    part.stored->file->check_unchanged();
    if (!part.stored->is_checked) part.stored->compare(std::exchange(sum, 0));
  };
  const auto make_copier = [&] {
    return [&, scratch = std::vector<char>(kPiece)](int64_t index) mutable { return copy(part_at(index), scratch); };
  };
  const bool from_disk = std::ranges::any_of(parts, [](const Part& part) { return part.stored->file->was_on_disk(); });
  const int threads = from_disk ? readers() : copiers();
  const auto count = std::ssize(parts);
  if (count < 2 || threads == 0) {
    auto copier = make_copier();
    for (int64_t i = 0; i < count; ++i) take(part_at(i), copier(i).sum);
  } else if (from_disk) {
    in_order<Read>(
        count, threads, [&] { return [&](int64_t index) { return read(part_at(index)); }; },
        [&](int64_t i, Outcome<Read> outcome) { take(part_at(i), sum_up(part_at(i), std::move(outcome).get())); });
  } else {
    in_order<Read>(count, threads, make_copier,
                   [&](int64_t i, Outcome<Read> outcome) { take(part_at(i), std::move(outcome).get().sum); });
  }
}

// Reads a part as it is. Any thread.
RangeReader::Read RangeReader::read(const Part& part) {
  Read read{.scratch = part.memory == nullptr ? borrow() : std::vector<char>()};
  part.stored->file->read(part.offset, part.memory == nullptr ? read.scratch.data() : part.memory, part.bytes);
  return read;
}

uint32_t RangeReader::sum_up(const Part& part, Read read) {
  const char* const bytes = part.memory == nullptr ? read.scratch.data() : part.memory;
  const uint32_t sum = part.stored->is_checked ? 0 : libdeflate_crc32(0, bytes, part.bytes);
  if (part.memory == nullptr) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(read.scratch));
  }
  return sum;
}

// Reads a part by way of `scratch`, which has room for a piece. Any thread.
RangeReader::Read RangeReader::copy(const Part& part, std::vector<char>& scratch) {
  Read copied;
  for (uint64_t done = 0; done < part.bytes; done += kPiece) {
    const uint64_t bytes = std::min(kPiece, part.bytes - done);
    part.stored->file->read(part.offset + done, scratch.data(), bytes);
    if (part.stored->is_checked) {
      if (part.memory != nullptr) stream_copy(part.memory + done, scratch.data(), bytes);
      continue;
    }
    const uint32_t sum = part.memory == nullptr ? libdeflate_crc32(0, scratch.data(), bytes)
                                                : stream_copy_summed(part.memory + done, scratch.data(), bytes);
    copied.sum = joined_crc(copied.sum, sum, bytes);
  }
  return copied;
}

std::vector<char> RangeReader::borrow() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return std::vector<char>(kPart);
  std::vector<char> scratch = std::move(free_.back());
  free_.pop_back();
  return scratch;
}

}  // namespace lockstep::checkpoint
