// Memory on large pages, between which and a disk data go past the system's copy of a file (O_DIRECT). A virtual disk
// takes a request for each page of such memory, and is three times as slow where they are small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::checkpoint {

// What O_DIRECT asks of offsets, lengths and addresses, whatever the disk.
constexpr uint64_t kDirectBlock = 4096;

// Whether the system may give this process large pages.
bool has_large_pages();

// Asks for large pages where they fit. The system may refuse: memory is on small ones then.
void ask_for_large_pages(char* memory, uint64_t bytes);

// Memory of its own, on a boundary of large pages. Its content is undefined.
class LargePages {
 public:
  // Throws IoError if memory is short.
  explicit LargePages(size_t bytes);
  ~LargePages();
  LargePages(LargePages&& other) noexcept;
  LargePages& operator=(LargePages&& other) = delete;

  char* data() const { return bytes_.data(); }
  size_t size() const { return bytes_.size(); }

 private:
  std::span<char> mapped_, bytes_;
};

}  // namespace lockstep::checkpoint
