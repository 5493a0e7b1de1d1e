#include "lockstep/track/event_records.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/track/crc32c.h"
#include "lockstep/track/event_file.h"

namespace lockstep::track {
namespace {

constexpr uint64_t kHead = 12, kTail = 4;  // length and its checksum; the record's checksum

struct Malformed {};

// The fields of a protocol buffer's message, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  bool done() const { return rest_.empty(); }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= uint64_t{byte & 0x7fU} << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    throw Malformed();
  }
  std::string_view take(uint64_t count) {
    if (count > rest_.size()) throw Malformed();
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  void skip(uint64_t type) {
    if (type == 0) varint();
    if (type == 1) take(8);
    if (type == 2) take(varint());
    if (type == 5) take(4);
    if (type > 5 || type == 3 || type == 4) throw Malformed();
  }

 private:
  std::string_view rest_;
};

// Of a tensorflow.Event.
int64_t step_of(std::string_view event) {
  constexpr uint64_t kStep = 2;
  int64_t step = 0;
  for (Fields fields(event); !fields.done();) {
    const uint64_t tag = fields.varint();
    if (tag == kStep << 3) {
      step = static_cast<int64_t>(fields.varint());
    } else {
      fields.skip(tag & 7);
    }
  }
  return step;
}

template <typename Number>
Number number_at(std::string_view bytes, size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

}  // namespace

EventRecords read_event_records(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw IoError(path, ": can't be read: ", errno_text(errno));
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(path, error);
  if (error) throw IoError(path, ": can't be read: ", error.message());
  EventRecords records;
  const auto refuse = [&](const char* what) {
    throw DataError(path, ": record ", records.whole.size() + 1, ", at byte ",
                    records.whole.empty() ? 0 : records.whole.back().end, ", ", what);
  };
  const auto read = [&](std::string& part) {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    if (!file) throw IoError(path, ": can't be read to its end: another process has cut it, or the disk fails");
  };
  std::string head(kHead, '\0'), record;
  for (uint64_t at = 0; at < bytes;) {
    records.has_half = bytes - at < kHead + kTail;
    if (records.has_half) break;
    read(head);
    const auto length = number_at<uint64_t>(head, 0);
    if (masked_crc32c(std::string_view(head).substr(0, 8)) != number_at<uint32_t>(head, 8))
      refuse("has another length");
    records.has_half = length > bytes - at - kHead - kTail;
    if (records.has_half) break;
    record.resize(length + kTail);
    read(record);
    const std::string_view event = std::string_view(record).substr(0, length);
    if (masked_crc32c(event) != number_at<uint32_t>(record, length)) refuse("has another checksum");
    at += kHead + record.size();
    try {
      records.whole.push_back({at, step_of(event)});
    } catch (const Malformed&) {
      refuse("is no event");
    }
  }
  return records;
}

bool cut_event_files(const std::string& folder, int64_t step) {
  bool has_dropped = false;
  for (const std::string& path : event_files(folder)) {
    EventRecords records;
    try {
      records = read_event_records(path);
    } catch (const DataError&) {
      continue;
    }
    uint64_t kept = 0;
    size_t count = 0;
    while (count < records.whole.size() && records.whole[count].step <= step) kept = records.whole[count++].end;
    std::error_code error;
    const bool drops = count < records.whole.size();
    if (drops && count <= 1) {  // the format's version alone
      std::filesystem::remove(path, error);
    } else if (drops || records.has_half) {
      std::filesystem::resize_file(path, kept, error);
    }
    if (error) throw IoError(path, ": can't be cut back: ", error.message());
    has_dropped = has_dropped || drops;
  }
  return has_dropped;
}

}  // namespace lockstep::track
