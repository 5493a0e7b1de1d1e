#include "lockstep/checkpoint/files/zip_layout.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/files/crc32.h"

namespace lockstep::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little);

// The record formats are those of PKWARE's APPNOTE.TXT, sections 4.3 and 4.5.
constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kDirectoryEntry = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50;
constexpr uint32_t kEnd64Locator = 0x07064b50;
constexpr uint16_t kVersion64 = 45;        // 4.5 of the format: zip64
constexpr uint16_t kUtf8Names = 1u << 11;  // general-purpose flag
constexpr uint32_t kFirstOfJanuary1980 = 0x0021u << 16;
constexpr uint16_t kZip64Field = 0x0001;
constexpr uint16_t kPaddingField = 0x4246;  // "FB", which PyTorch pads with
constexpr uint64_t kIn64 = 0xffffffff;      // "see the zip64 field"
constexpr uint64_t kFieldHeader = 4;
constexpr uint64_t kLocalHeaderBytes = 30;
constexpr uint64_t kCrcAt = 14, kSizeAt = 18, kNameBytesAt = 26;  // in a local header

// A record of little-endian numbers one after the other.
class Record {
 public:
  Record& u16(uint64_t value) { return put(static_cast<uint16_t>(value)); }
  Record& u32(uint64_t value) { return put(static_cast<uint32_t>(value)); }
  Record& u64(uint64_t value) { return put(value); }
  Record& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  template <typename T>
  Record& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  std::string bytes_;
};

uint64_t fits_32(uint64_t value) { return std::min(value, kIn64); }

// The fields that a local header and a directory entry share: flags to sizes.
Record& common_fields(Record& record, uint32_t crc, uint64_t bytes) {
  constexpr uint16_t kStored = 0;
  return record.u16(kUtf8Names).u16(kStored).u32(kFirstOfJanuary1980).u32(crc).u32(fits_32(bytes)).u32(fits_32(bytes));
}

// What lies between an entry's name and its content: the sizes where they need 64 bits, and the padding.
std::string extra_of(const ZipEntry& entry) {
  Record extra;
  if (entry.bytes >= kIn64) extra.u16(kZip64Field).u16(16).u64(entry.bytes).u64(entry.bytes);
  const uint64_t unpadded = entry.header + kLocalHeaderBytes + entry.name.size() + extra.bytes().size() + kFieldHeader;
  const uint64_t padding = (ZipLayout::kAlignment - unpadded % ZipLayout::kAlignment) % ZipLayout::kAlignment;
  return extra.u16(kPaddingField).u16(padding).text(std::string(padding, 'Z')).bytes();
}

std::string directory_entry(const ZipEntry& entry) {
  Record field;
  if (entry.bytes >= kIn64) field.u64(entry.bytes).u64(entry.bytes);
  if (entry.header >= kIn64) field.u64(entry.header);
  Record extra;
  if (!field.bytes().empty()) extra.u16(kZip64Field).u16(field.bytes().size()).text(field.bytes());

  Record record;
  record.u32(kDirectoryEntry).u16(kVersion64).u16(kVersion64);
  common_fields(record, entry.crc, entry.bytes).u16(entry.name.size()).u16(extra.bytes().size());
  record.u16(0).u16(0).u16(0).u32(0);  // no comment, first disk, no attributes
  record.u32(fits_32(entry.header)).text(entry.name).text(extra.bytes());
  return record.bytes();
}

template <typename T>
T number_at(std::span<const char> image, uint64_t offset) {
  T number;
  std::memcpy(&number, image.data() + offset, sizeof number);
  return number;
}

// The entry whose local header begins where the layout ends. What add() makes of its name and size must be the very
// header that is there, but for the checksum.
ZipEntry& read_entry(std::span<const char> image, ZipLayout& layout) {
  const uint64_t at = layout.end();
  const auto check = [at](bool holds) {
    if (!holds) throw DataError("a checkpoint's image has no entry at byte ", at);
  };
  check(image.size() - at >= kLocalHeaderBytes && number_at<uint32_t>(image, at) == kLocalHeader);
  const auto name_bytes = number_at<uint16_t>(image, at + kNameBytesAt);
  const uint64_t extra_at = at + kLocalHeaderBytes + name_bytes;
  uint64_t bytes = number_at<uint32_t>(image, at + kSizeAt);
  check(image.size() >= extra_at + (bytes == kIn64 ? kFieldHeader + sizeof bytes : 0));
  if (bytes == kIn64) bytes = number_at<uint64_t>(image, extra_at + kFieldHeader);
  ZipEntry& entry = layout.add({image.data() + at + kLocalHeaderBytes, name_bytes}, bytes);
  entry.crc = number_at<uint32_t>(image, at + kCrcAt);
  const std::string header = local_header(entry);
  check(entry.content <= image.size() && entry.bytes <= image.size() - entry.content &&
        std::memcmp(header.data(), image.data() + at, header.size()) == 0);
  return entry;
}

uint32_t checksum(std::string_view content, const std::function<void()>& on_progress) {
  constexpr size_t kPart = 16u << 20;
  uint32_t crc = 0;
  for (; !content.empty(); content.remove_prefix(std::min(kPart, content.size()))) {
    crc = crc32(content.substr(0, kPart), crc);
    if (on_progress) on_progress();
  }
  return crc;
}

}  // namespace

ZipEntry& ZipLayout::add(std::string name, uint64_t bytes) {
  if (name.size() >= 1u << 15) throw BugError("a zip entry's name of ", name.size(), " bytes");
  ZipEntry& entry = entries_.emplace_back(ZipEntry{.name = std::move(name), .bytes = bytes, .header = end_});
  entry.content = end_ + kLocalHeaderBytes + entry.name.size() + extra_of(entry).size();
  end_ = entry.content + bytes;
  return entry;
}

std::string ZipLayout::directory() const {
  constexpr uint64_t kIn64Count = 0xffff;
  std::string entries;
  for (const ZipEntry& entry : entries_) entries += directory_entry(entry);
  const uint64_t start = end_, bytes = entries.size(), count = entries_.size();
  Record end;
  if (count >= kIn64Count || start >= kIn64 || bytes >= kIn64) {
    constexpr uint64_t kEnd64Rest = 44;  // of the record, after this size
    end.u32(kEnd64).u64(kEnd64Rest).u16(kVersion64).u16(kVersion64).u32(0).u32(0);
    end.u64(count).u64(count).u64(bytes).u64(start);
    end.u32(kEnd64Locator).u32(0).u64(start + bytes).u32(1);
  }
  end.u32(kEnd).u16(0).u16(0).u16(std::min(count, kIn64Count)).u16(std::min(count, kIn64Count));
  end.u32(fits_32(bytes)).u32(fits_32(start)).u16(0);
  return entries + end.bytes();
}

std::string local_header(const ZipEntry& entry) {
  const std::string extra = extra_of(entry);
  Record header;
  header.u32(kLocalHeader).u16(kVersion64);
  common_fields(header, entry.crc, entry.bytes).u16(entry.name.size()).u16(extra.size());
  return header.text(entry.name).text(extra).bytes();
}

std::string complete_archive(std::span<char> image, const std::function<void()>& on_progress, const ByteSums& sums) {
  ZipLayout layout;
  while (layout.end() < image.size()) {
    ZipEntry& entry = read_entry(image, layout);
    const auto known = sums.of(entry.content, entry.bytes);
    entry.crc = known ? *known : checksum({image.data() + entry.content, entry.bytes}, on_progress);
    std::memcpy(image.data() + entry.header + kCrcAt, &entry.crc, sizeof entry.crc);
  }
  return layout.directory();
}

}  // namespace lockstep::checkpoint
