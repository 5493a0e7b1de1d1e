// MXNet's RecordIO files of images: x.rec.
//
// A part is u32 magic | u32 (flag << 29 | length) | data | zeros to a multiple of 4. Flag 0 is a whole record; 1, 2 and
// 3 are the first, the middle and the last part of one whose data holds the magic, which stands between the parts. The
// data are u32 labels | f32 label | u64 id | u64 id2 | f32[labels] | the image; with labels > 0 these take label's
// place.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/datasets/files/file_bytes.h"

namespace lockstep::datasets {

// Where a record of an image lies, and its class.
struct RecordPlace {
  uint64_t offset = 0, bytes = 0;  // with the heads of all its parts
  int32_t class_number = 0;
  bool operator==(const RecordPlace&) const = default;
};

// Immutable; any thread. Errors are DataErrors that name the file and the byte.
class RecordIo {
 public:
  explicit RecordIo(const std::string& path);
  const std::string& path() const { return file_.path(); }
  uint64_t bytes() const { return file_.size(); }

  // Finds all records, by one pass over their heads. Checks their number where x.idx is there. Throws DataError for
  // damage and for images without one class that is a whole number.
  std::vector<RecordPlace> scan() const;

  // Reads a record's image, which lies in `memory`.
  std::span<const uint8_t> image(const RecordPlace& place, std::vector<uint8_t>& memory) const;
  void will_need(const RecordPlace& place) const { file_.will_need(place.offset, place.bytes); }

 private:
  struct Part {
    uint32_t flag = 0, length = 0;
    uint64_t data = 0, next = 0;  // offsets
  };
  Part part_at(uint64_t offset, std::vector<uint8_t>& memory) const;
  int32_t class_of(const Part& first, std::vector<uint8_t>& memory) const;
  void check_index(size_t records) const;
  [[noreturn]] void throw_damaged(uint64_t at, const std::string& what) const;

  DataFile file_;
};

}  // namespace lockstep::datasets
