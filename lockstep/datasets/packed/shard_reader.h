// Reads a shard of packed data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/datasets/files/file_bytes.h"
#include "lockstep/datasets/packed/format.h"

namespace lockstep::datasets {

// Its index and names are in memory, its records on disk. Immutable; any thread.
class ShardReader {
 public:
  // Throws DataError that names the file and the fault: missing, no shard, of another version, damaged, cut short.
  explicit ShardReader(const std::string& path);

  const std::string& path() const { return file_.path(); }
  uint64_t bytes() const { return file_.size(); }  // of the file
  int64_t size() const { return std::ssize(index_); }
  int32_t class_of(int64_t record) const { return entry(record).class_number; }
  uint64_t source_of(int64_t record) const { return entry(record).source; }
  std::string name_of(int64_t record) const;  // its file's before it was packed
  std::vector<std::string> class_names() const;

  // Reads a record, whose spans lie in `memory`. Throws DataError that names shard, record and source if it is damaged.
  PackedRecord read(int64_t record, std::vector<uint8_t>& memory) const;

  // Tells the system that these records, in ascending order, will be read soon. Returns at once.
  void will_need(const std::vector<int64_t>& records) const;

 private:
  struct Entry {
    uint64_t offset;
    uint32_t bytes;
    int32_t class_number;
    uint64_t source;
  };
  // Where a name lies in names_.
  struct Place {
    uint32_t begin, length;
  };

  const Entry& entry(int64_t record) const { return index_.at(static_cast<size_t>(record)); }
  std::string name_at(size_t number) const;
  void read_index(uint64_t records, uint64_t offset);
  void read_names(uint64_t offset);
  [[noreturn]] void throw_damaged(uint64_t at, const std::string& what) const;
  [[noreturn]] void throw_damaged_record(int64_t record, const char* what) const;

  DataFile file_;
  std::vector<Entry> index_;
  std::vector<uint8_t> names_;
  std::vector<Place> places_;  // of the classes' names, then of the records'
};

}  // namespace lockstep::datasets
