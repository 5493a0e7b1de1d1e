// The reading of many ranges of a checkpoint's files into memory, by a few threads.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "lockstep/checkpoint/formats/stored_tensor.h"

namespace lockstep::checkpoint {

// Reads ranges of files and sums them up. A disk is read by threads that take one part after the other, as it is
// fastest, while the calling thread sums up what has come. What the system has in memory each of a few threads copies
// and sums up by itself, in pieces that stay in its cache. One thread.
class RangeReader {
 public:
  // `bytes` of the storage from `offset` of its file on, into memory or, where that is nullptr, for its checksum alone.
  // All of the storage, if its checksum has not been compared. Storage and memory are there until run() has returned.
  void add(const StoredBytes& stored, uint64_t offset, uint64_t bytes, void* memory);
  void add(const StoredBytes& stored, void* memory) { add(stored, stored.offset, stored.bytes, memory); }

  // Reads what has been added, and compares checksums that were not before. Throws DataError, IoError.
  void run();

 private:
  struct Part {
    const StoredBytes* stored;
    uint64_t offset;
    char* memory;
    uint64_t bytes;
    bool is_last;  // of its range
  };
  struct Read {
    std::vector<char> scratch = {};  // the bytes, where they go nowhere else
    uint32_t sum = 0;                // where the thread that read them has summed them up
  };

  Read read(const Part& part);
  static Read copy(const Part& part, std::vector<char>& scratch);
  uint32_t sum_up(const Part& part, Read read);
  std::vector<char> borrow();

  std::vector<Part> parts_;
  std::mutex mutex_;
  std::vector<std::vector<char>> free_;  // memory for a part each
};

}  // namespace lockstep::checkpoint
