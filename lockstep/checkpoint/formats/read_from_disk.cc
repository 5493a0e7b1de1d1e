#include "lockstep/checkpoint/formats/read_from_disk.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/in_order.h"
#include "lockstep/checkpoint/files/crc32.h"
#include "lockstep/checkpoint/files/large_pages.h"
#include "lockstep/checkpoint/files/stream_copy.h"

namespace lockstep::checkpoint {
namespace {

constexpr uint64_t kBlock = 4u << 20;  // bytes of a file that a thread takes at a time

// What is read through because it takes no longer than another request to the disk.
constexpr uint64_t kGap = 256u << 10;

// Threads that read beside the one that copies, if any. Few: two keep a disk at work, and other ranks may read at the
// same time.
int readers() {
  const int cores = std::min(usable_cores(), 2);
  return cores > 1 ? cores : 0;
}

// What of a range lies in one block.
struct Slice {
  ReadRange* range;
  uint64_t offset, bytes;
};

// Bytes of a file that are read at once, and what they are for.
struct Block {
  const StoredFile* file;
  uint64_t begin = 0, end = 0;  // whole blocks of the disk's; the last may reach behind the file's end
  bool past_memory = true;
  std::vector<Slice> slices = {};  // by offset
};

std::vector<Block> blocks_of(std::vector<ReadRange>& ranges) {
  std::vector<Slice> slices;
  for (ReadRange& range : ranges) {
    for (uint64_t done = 0, count = 0; done < range.bytes; done += count) {
      const uint64_t from = range.offset + done;
      count = std::min(range.bytes - done, kBlock - from % kBlock);
      slices.push_back({&range, from, count});
    }
  }
  std::ranges::stable_sort(slices, {},
                           [](const Slice& slice) { return std::pair(slice.range->stored->file.get(), slice.offset); });
  std::vector<Block> blocks;
  for (const Slice& slice : slices) {
    const StoredFile* const file = slice.range->stored->file.get();
    const uint64_t begin = slice.offset / kDirectBlock * kDirectBlock;
    const uint64_t end = (slice.offset + slice.bytes + kDirectBlock - 1) / kDirectBlock * kDirectBlock;
    const bool goes_on = !blocks.empty() && blocks.back().file == file &&
                         blocks.back().begin / kBlock == begin / kBlock && begin <= blocks.back().end + kGap;
    if (!goes_on) blocks.push_back({.file = file, .begin = begin});
    Block& block = blocks.back();
    block.end = std::max(block.end, end);
    if (slice.range->is_read_again) block.past_memory = false;
    block.slices.push_back(slice);
  }
  return blocks;
}

// Memory for a block each. Any thread.
class Buffers {
 public:
  LargePages borrow() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return LargePages(kBlock);
    LargePages buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }
  void give_back(LargePages buffer) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(buffer));
  }

 private:
  std::mutex mutex_;
  std::vector<LargePages> free_;
};

LargePages read(const Block& block, Buffers& buffers) {
  LargePages buffer = buffers.borrow();
  block.file->read_block(block.begin, buffer.data(), block.end - block.begin, block.past_memory);
  return buffer;
}

void take(const Block& block, const char* bytes) {
  for (const Slice& slice : block.slices) {
    ReadRange& range = *slice.range;
    const char* const from = bytes + (slice.offset - block.begin);
    char* const to = range.memory == nullptr ? nullptr : range.memory + (slice.offset - range.offset);
    if (to == nullptr) {
      range.checksum = crc32({from, slice.bytes}, range.checksum);
    } else if (range.stored->is_checked) {
      stream_copy(to, from, slice.bytes);
    } else {
      range.checksum = stream_copy_summed(to, from, slice.bytes, range.checksum);
    }
    range.taken += slice.bytes;
    if (range.taken == range.bytes) end_range(range);
  }
}

}  // namespace

void read_from_disk(std::vector<ReadRange> ranges) {
  const std::vector<Block> blocks = blocks_of(ranges);
  const auto block_at = [&](int64_t index) -> const Block& { return blocks[static_cast<size_t>(index)]; };
  Buffers buffers;
  const auto take_read = [&](const Block& block, LargePages buffer) {
    take(block, buffer.data());
    buffers.give_back(std::move(buffer));
  };
  const auto count = std::ssize(blocks);
  const int threads = count < 2 ? 0 : readers();
  if (threads == 0) {
    for (const Block& block : blocks) take_read(block, read(block, buffers));
  } else {
    in_order<LargePages>(
        count, threads, [&] { return [&](int64_t index) { return read(block_at(index), buffers); }; },
        [&](int64_t i, Outcome<LargePages> outcome) { take_read(block_at(i), std::move(outcome).get()); });
  }
}

}  // namespace lockstep::checkpoint
