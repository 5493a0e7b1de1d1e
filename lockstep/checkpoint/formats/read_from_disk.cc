#include "lockstep/checkpoint/formats/read_from_disk.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "lockstep/base/in_order.h"
#include "lockstep/checkpoint/files/large_pages.h"

namespace lockstep::checkpoint {
namespace {

constexpr uint64_t kBlock = 4u << 20;  // bytes of a file that a thread takes at a time

// What is read through because it takes no longer than another request to the disk.
constexpr uint64_t kGap = 256u << 10;

// Threads that read. Few: two keep a disk at work, and other ranks may read at the same time.
constexpr int kReaders = 2;

// Bytes of a file that are read at once, and what they are for.
struct Block {
  const StoredFile* file;
  uint64_t begin = 0, end = 0;  // whole blocks of the disk's; the last may reach behind the file's end
  bool past_memory = true;
  std::vector<RangePart> parts = {};  // by offset
};

std::vector<Block> blocks_of(std::vector<ReadRange>& ranges) {
  std::vector<RangePart> parts = parts_of(ranges, kBlock);
  std::ranges::stable_sort(
      parts, {}, [](const RangePart& part) { return std::pair(part.range->stored->file.get(), part.offset); });
  std::vector<Block> blocks;
  for (const RangePart& part : parts) {
    const StoredFile* const file = part.range->stored->file.get();
    const uint64_t begin = part.offset / kDirectBlock * kDirectBlock;
    const uint64_t end = (part.offset + part.bytes + kDirectBlock - 1) / kDirectBlock * kDirectBlock;
    const bool goes_on = !blocks.empty() && blocks.back().file == file &&
                         blocks.back().begin / kBlock == begin / kBlock && begin <= blocks.back().end + kGap;
    if (!goes_on) blocks.push_back({.file = file, .begin = begin});
    Block& block = blocks.back();
    block.end = std::max(block.end, end);
    if (part.range->is_read_again) block.past_memory = false;
    block.parts.push_back(part);
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

// Reads blocks, and has one file open at a time: a model may have more files than a process may have open twice. One
// thread.
class BlockReader {
 public:
  explicit BlockReader(Buffers& buffers) : buffers_(&buffers) {}

  LargePages read(const Block& block) {
    if (block.file != file_) direct_ = block.file->open_direct();
    file_ = block.file;
    LargePages buffer = buffers_->borrow();
    block.file->read_block(block.begin, buffer.data(), block.end - block.begin, block.past_memory ? direct_ : nothing_);
    return buffer;
  }

 private:
  Buffers* buffers_;
  const StoredFile* file_ = nullptr;
  Descriptor direct_, nothing_;
};

void take(const Block& block, const char* bytes) {
  for (const RangePart& part : block.parts) {
    uint32_t& sum = part.range->checksum;
    sum = deliver(part, bytes + (part.offset - block.begin), sum);
    count_delivered(part);
  }
}

}  // namespace

void read_from_disk(std::vector<ReadRange> ranges) {
  const std::vector<Block> blocks = blocks_of(ranges);
  const auto block_at = [&](int64_t index) -> const Block& { return blocks[static_cast<size_t>(index)]; };
  Buffers buffers;
  const auto count = std::ssize(blocks);
  in_order<LargePages>(
      count, threads_beside(kReaders, count),
      [&] {
        return [&, reader = BlockReader(buffers)](int64_t index) mutable { return reader.read(block_at(index)); };
      },
      [&](int64_t i, Outcome<LargePages> outcome) {
        LargePages buffer = std::move(outcome).get();
        take(block_at(i), buffer.data());
        buffers.give_back(std::move(buffer));
      });
}

}  // namespace lockstep::checkpoint
