// Where the parts of a zip archive lie, before any of its content is there: entries one after the other, each behind a
// local header, then the directory. Entries are uncompressed, and their content is aligned in the file so that readers
// can map it. What needs 64 bits gets zip64 fields.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/checkpoint/files/byte_sums.h"

namespace lockstep::checkpoint {

struct ZipEntry {
  std::string name;
  uint64_t bytes = 0;    // of the content
  uint64_t header = 0;   // the local header's offset in the file
  uint64_t content = 0;  // the content's offset, a multiple of kAlignment
  uint32_t crc = 0;      // of the content; 0 until it is known
};

// The offsets and checksums of an archive's entries. One thread.
class ZipLayout {
 public:
  static constexpr uint64_t kAlignment = 64;  // bytes, of every entry's content, as in torch.save's files

  // Places an entry behind those before it. Names must be unique and shorter than 32 KiB, else BugError.
  ZipEntry& add(std::string name, uint64_t bytes);
  const std::vector<ZipEntry>& entries() const { return entries_; }
  std::vector<ZipEntry>& entries() { return entries_; }
  // The offset behind the last content, where the directory begins.
  uint64_t end() const { return end_; }
  // The directory, with which the archive ends. The entries' checksums must be known.
  std::string directory() const;

 private:
  std::vector<ZipEntry> entries_;
  uint64_t end_ = 0;
};

// The local header of an entry, `content - header` bytes.
std::string local_header(const ZipEntry& entry);

// Completes an archive in memory, `image`, that has all of its local headers and contents but no checksums: puts these
// into the headers, from `sums` where it has them. Returns the directory, which follows the image in the file. Throws
// DataError if `image` is not made of such entries, to its last byte. `on_progress` is called each time that some
// megabytes have been summed up.
std::string complete_archive(std::span<char> image, const std::function<void()>& on_progress = {},
                             const ByteSums& sums = ByteSums({}));

}  // namespace lockstep::checkpoint
