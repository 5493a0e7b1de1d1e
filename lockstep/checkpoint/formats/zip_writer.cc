#include "lockstep/checkpoint/formats/zip_writer.h"

#include <libdeflate.h>

#include <algorithm>
#include <bit>

#include "lockstep/base/error.h"

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

}  // namespace

void ZipWriter::write(std::string_view bytes) {
  sink_.write(bytes);
  position_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::string_view content) {
  if (name.size() >= 1u << 15) throw BugError("a zip entry's name of ", name.size(), " bytes");
  const uint32_t crc = libdeflate_crc32(0, content.data(), content.size());
  entries_.push_back({name, crc, content.size(), position_});

  Record extra;
  if (content.size() >= kIn64) extra.u16(kZip64Field).u16(16).u64(content.size()).u64(content.size());
  const uint64_t unpadded = position_ + kLocalHeaderBytes + name.size() + extra.bytes().size() + kFieldHeader;
  const uint64_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;
  extra.u16(kPaddingField).u16(padding).text(std::string(padding, 'Z'));

  Record header;
  header.u32(kLocalHeader).u16(kVersion64);
  common_fields(header, crc, content.size()).u16(name.size()).u16(extra.bytes().size());
  write(header.text(name).text(extra.bytes()).bytes());
  write(content);
}

std::string ZipWriter::directory_entry(const Entry& entry) {
  Record field;
  if (entry.bytes >= kIn64) field.u64(entry.bytes).u64(entry.bytes);
  if (entry.offset >= kIn64) field.u64(entry.offset);
  Record extra;
  if (!field.bytes().empty()) extra.u16(kZip64Field).u16(field.bytes().size()).text(field.bytes());

  Record record;
  record.u32(kDirectoryEntry).u16(kVersion64).u16(kVersion64);
  common_fields(record, entry.crc, entry.bytes).u16(entry.name.size()).u16(extra.bytes().size());
  record.u16(0).u16(0).u16(0).u32(0);  // no comment, first disk, no attributes
  record.u32(fits_32(entry.offset)).text(entry.name).text(extra.bytes());
  return record.bytes();
}

void ZipWriter::finish() {
  constexpr uint64_t kIn64Count = 0xffff;
  const uint64_t start = position_;
  for (const Entry& entry : entries_) write(directory_entry(entry));
  const uint64_t bytes = position_ - start;
  const uint64_t count = entries_.size();
  Record end;
  if (count >= kIn64Count || start >= kIn64 || bytes >= kIn64) {
    constexpr uint64_t kEnd64Rest = 44;  // of the record, after this size
    end.u32(kEnd64).u64(kEnd64Rest).u16(kVersion64).u16(kVersion64).u32(0).u32(0);
    end.u64(count).u64(count).u64(bytes).u64(start);
    end.u32(kEnd64Locator).u32(0).u64(start + bytes).u32(1);
  }
  end.u32(kEnd).u16(0).u16(0).u16(std::min(count, kIn64Count)).u16(std::min(count, kIn64Count));
  end.u32(fits_32(bytes)).u32(fits_32(start)).u16(0);
  write(end.bytes());
}

}  // namespace lockstep::checkpoint
