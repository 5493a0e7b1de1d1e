#include "lockstep/checkpoint/formats/range_reader.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/in_order.h"
#include "lockstep/checkpoint/files/crc32.h"
#include "lockstep/checkpoint/files/stream_copy.h"
#include "lockstep/checkpoint/formats/read_from_disk.h"

namespace lockstep::checkpoint {
namespace {

constexpr uint64_t kPart = 4u << 20;     // bytes that a thread takes at a time
constexpr uint64_t kPiece = 256u << 10;  // of these, that it copies and sums up at a time: they are in its cache then

// Threads that copy from the system's memory, if any.
int copiers() {
  const int cores = std::min(usable_cores(), 4);
  return cores > 1 ? cores : 0;
}

struct Part {
  ReadRange* range;
  uint64_t offset, bytes;
  bool is_last;  // of its range
};

std::vector<Part> parts_of(std::vector<ReadRange>& ranges) {
  std::vector<Part> parts;
  for (ReadRange& range : ranges) {
    for (uint64_t done = 0, count = 0; done < range.bytes; done += count) {
      const uint64_t from = range.offset + done;
      count = std::min(range.bytes - done, kPart - from % kPart);  // whole pages of the system's
      parts.push_back({&range, from, count, done + count == range.bytes});
    }
  }
  return parts;
}

// Reads a part by way of `scratch`, which has room for a piece. Returns its checksum. Any thread.
uint32_t copy(const Part& part, std::vector<char>& scratch) {
  const StoredBytes& stored = *part.range->stored;
  uint32_t sum = 0;
  for (uint64_t done = 0; done < part.bytes; done += kPiece) {
    const uint64_t bytes = std::min(kPiece, part.bytes - done), offset = part.offset + done;
    stored.file->read(offset, scratch.data(), bytes);
    char* const to = part.range->memory == nullptr ? nullptr : part.range->memory + (offset - part.range->offset);
    if (to == nullptr) {
      sum = crc32({scratch.data(), bytes}, sum);
    } else if (stored.is_checked) {
      stream_copy(to, scratch.data(), bytes);
    } else {
      sum = stream_copy_summed(to, scratch.data(), bytes, sum);
    }
  }
  return sum;
}

void read_from_memory(std::vector<ReadRange> ranges) {
  const std::vector<Part> parts = parts_of(ranges);
  const auto part_at = [&](int64_t index) -> const Part& { return parts[static_cast<size_t>(index)]; };
  const auto make_copier = [&] {
    return [&, scratch = std::vector<char>(kPiece)](int64_t index) mutable { return copy(part_at(index), scratch); };
  };
  const auto take = [](const Part& part, uint32_t sum) {
    part.range->checksum = joined_crc(part.range->checksum, sum, part.bytes);
    if (part.is_last) end_range(*part.range);
  };
  const auto count = std::ssize(parts);
  const int threads = count < 2 ? 0 : copiers();
  if (threads == 0) {
    auto copier = make_copier();
    for (int64_t i = 0; i < count; ++i) take(part_at(i), copier(i));
  } else {
    in_order<uint32_t>(count, threads, make_copier,
                       [&](int64_t i, Outcome<uint32_t> outcome) { take(part_at(i), std::move(outcome).get()); });
  }
}

}  // namespace

void RangeReader::add(const StoredBytes& stored, uint64_t offset, uint64_t bytes, void* memory, bool is_read_again) {
  std::vector<ReadRange>& ranges = stored.is_cached ? in_memory_ : on_disk_;
  ranges.push_back({&stored, offset, bytes, static_cast<char*>(memory), is_read_again});
}

void RangeReader::run() {
  read_from_disk(std::exchange(on_disk_, {}));
  read_from_memory(std::exchange(in_memory_, {}));
}

void end_range(const ReadRange& range) {
  range.stored->file->check_unchanged();
  if (!range.stored->is_checked) range.stored->compare(range.checksum);
}

}  // namespace lockstep::checkpoint
