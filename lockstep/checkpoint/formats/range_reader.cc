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

constexpr int kCopiers = 4;  // threads at most

// Reads a part by way of `scratch`, which has room for a piece. Returns its checksum. Any thread.
uint32_t copy(const RangePart& part, std::vector<char>& scratch) {
  uint32_t sum = 0;
  for (uint64_t done = 0; done < part.bytes; done += kPiece) {
    const RangePart piece{part.range, part.offset + done, std::min(kPiece, part.bytes - done)};
    part.range->stored->file->read(piece.offset, scratch.data(), piece.bytes);
    sum = deliver(piece, scratch.data(), sum);
  }
  return sum;
}

void read_from_memory(std::vector<ReadRange> ranges) {
  const std::vector<RangePart> parts = parts_of(ranges, kPart);
  const auto part_at = [&](int64_t index) -> const RangePart& { return parts[static_cast<size_t>(index)]; };
  const auto make_copier = [&] {
    return [&, scratch = std::vector<char>(kPiece)](int64_t index) mutable { return copy(part_at(index), scratch); };
  };
  const auto count = std::ssize(parts);
  in_order<uint32_t>(count, threads_beside(kCopiers, count), make_copier, [&](int64_t i, Outcome<uint32_t> outcome) {
    const RangePart& part = part_at(i);
    part.range->checksum = joined_crc(part.range->checksum, std::move(outcome).get(), part.bytes);
    count_delivered(part);
  });
}

}  // namespace

std::vector<RangePart> parts_of(std::vector<ReadRange>& ranges, uint64_t largest) {
  std::vector<RangePart> parts;
  for (ReadRange& range : ranges) {
    for (uint64_t done = 0, count = 0; done < range.bytes; done += count) {
      const uint64_t from = range.offset + done;
      count = std::min(range.bytes - done, largest - from % largest);
      parts.push_back({&range, from, count});
    }
  }
  return parts;
}

uint32_t deliver(const RangePart& part, const char* bytes, uint32_t before) {
  const ReadRange& range = *part.range;
  if (range.memory == nullptr) return crc32({bytes, part.bytes}, before);
  char* const to = range.memory + (part.offset - range.offset);
  if (!range.stored->is_checked) return stream_copy_summed(to, bytes, part.bytes, before);
  stream_copy(to, bytes, part.bytes);
  return before;
}

void count_delivered(const RangePart& part) {
  ReadRange& range = *part.range;
  range.taken += part.bytes;
  if (range.taken < range.bytes) return;
  range.stored->file->check_unchanged();
  if (!range.stored->is_checked) range.stored->compare(range.checksum);
}

int threads_beside(int most, int64_t parts) {
  const int cores = parts < 2 ? 1 : std::min(usable_cores(), most);
  return cores > 1 ? cores : 0;
}

void RangeReader::add(const StoredBytes& stored, uint64_t offset, uint64_t bytes, void* memory, bool is_read_again) {
  std::vector<ReadRange>& ranges = stored.is_cached ? in_memory_ : on_disk_;
  ranges.push_back({&stored, offset, bytes, static_cast<char*>(memory), is_read_again});
}

void RangeReader::run() {
  read_from_disk(std::exchange(on_disk_, {}));
  read_from_memory(std::exchange(in_memory_, {}));
}

}  // namespace lockstep::checkpoint
