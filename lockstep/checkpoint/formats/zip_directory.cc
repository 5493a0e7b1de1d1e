#include "lockstep/checkpoint/formats/zip_directory.h"

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/byte_cursor.h"

namespace lockstep::checkpoint {
namespace {

// The record formats are those of PKWARE's APPNOTE.TXT, sections 4.3 and 4.5.
constexpr uint32_t kLocalHeader = 0x04034b50, kDirectoryEntry = 0x02014b50;
constexpr uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr uint64_t kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56, kLocalHeaderBytes = 30;
constexpr uint64_t kIn64 = 0xffffffff;
constexpr uint16_t kIn64Count = 0xffff, kZip64Field = 1, kStored = 0, kEncrypted = 1;
constexpr uint64_t kMaxDirectoryBytes = 16u << 20;

std::string bytes_at(const std::string& path, const InputFile& file, uint64_t offset, uint64_t bytes) {
  if (bytes > file.bytes || offset > file.bytes - bytes) throw Fault{"a record outside the file"};
  std::string text(bytes, '\0');
  read_at(file.fd.get(), path, offset, text.data(), bytes);
  return text;
}

void expect(ByteCursor& cursor, uint32_t signature) {
  if (cursor.number<uint32_t>() != signature) throw Fault{"another record"};
}

struct Extent {
  uint64_t count = 0, bytes = 0, offset = 0;  // of the directory
};

// The end record of zip64, before the usual one.
Extent read_end64(const std::string& path, const InputFile& file) {
  const std::string found = bytes_at(path, file, file.bytes - kEndBytes - kLocatorBytes, kLocatorBytes);
  ByteCursor locator(found);
  expect(locator, kEnd64Locator);
  locator.take(4);
  const std::string record = bytes_at(path, file, locator.number<uint64_t>(), kEnd64Bytes);
  ByteCursor end(record);
  expect(end, kEnd64);
  end.take(28);
  Extent extent;
  extent.count = end.number<uint64_t>();
  extent.bytes = end.number<uint64_t>();
  extent.offset = end.number<uint64_t>();
  return extent;
}

Extent read_end(const std::string& path, const InputFile& file) {
  if (file.bytes < kEndBytes + kLocatorBytes) throw Fault{"too short"};
  const std::string record = bytes_at(path, file, file.bytes - kEndBytes, kEndBytes);
  ByteCursor end(record);
  expect(end, kEnd);
  end.take(6);
  Extent extent;
  extent.count = end.number<uint16_t>();
  extent.bytes = end.number<uint32_t>();
  extent.offset = end.number<uint32_t>();
  const bool in_64 = extent.count == kIn64Count || extent.bytes == kIn64 || extent.offset == kIn64;
  return in_64 ? read_end64(path, file) : extent;
}

// Replaces what the zip64 field holds in place of 32 bits.
void read_zip64(ByteCursor extra, uint64_t& unpacked, uint64_t& packed, uint64_t& header) {
  while (extra.left() >= 4) {
    const auto id = extra.number<uint16_t>();
    ByteCursor field(extra.take(extra.number<uint16_t>()));
    if (id != kZip64Field) continue;
    for (uint64_t* number : {&unpacked, &packed, &header}) {
      if (*number == kIn64) *number = field.number<uint64_t>();
    }
    return;
  }
}

}  // namespace

ZipDirectory::ZipDirectory(std::string path, const InputFile& file) : path_(std::move(path)), file_(file) {
  try {
    read_entries();
  } catch (const Fault&) {
    entries_.clear();
  } catch (const DataError&) {  // the file became shorter meanwhile
    entries_.clear();
  }
}

void ZipDirectory::read_entries() {
  const Extent extent = read_end(path_, file_);
  if (extent.bytes > kMaxDirectoryBytes) throw Fault{"a large directory"};
  const std::string directory = bytes_at(path_, file_, extent.offset, extent.bytes);
  ByteCursor cursor(directory);
  for (uint64_t i = 0; i < extent.count; ++i) {
    expect(cursor, kDirectoryEntry);
    cursor.take(4);
    const auto flags = cursor.number<uint16_t>(), packing = cursor.number<uint16_t>();
    cursor.take(4);
    Entry entry{.checksum = cursor.number<uint32_t>()};
    uint64_t packed = cursor.number<uint32_t>();
    entry.bytes = cursor.number<uint32_t>();
    const auto name = cursor.number<uint16_t>(), extra = cursor.number<uint16_t>(), note = cursor.number<uint16_t>();
    cursor.take(8);
    entry.header = cursor.number<uint32_t>();
    const std::string_view named = cursor.take(name);
    read_zip64(ByteCursor(cursor.take(extra)), entry.bytes, packed, entry.header);
    cursor.take(note);
    const bool plain = packing == kStored && packed == entry.bytes && (flags & kEncrypted) == 0;
    if (plain) entries_.emplace(named, entry);
  }
}

std::optional<ZipContent> ZipDirectory::find(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return std::nullopt;
  const Entry& entry = found->second;
  try {
    const std::string record = bytes_at(path_, file_, entry.header, kLocalHeaderBytes);
    ByteCursor header(record);
    expect(header, kLocalHeader);
    header.take(22);
    const uint64_t name_bytes = header.number<uint16_t>(), extra_bytes = header.number<uint16_t>();
    const uint64_t offset = entry.header + kLocalHeaderBytes + name_bytes + extra_bytes;
    if (entry.bytes > file_.bytes || offset > file_.bytes - entry.bytes) return std::nullopt;
    return ZipContent{.offset = offset, .bytes = entry.bytes, .checksum = entry.checksum};
  } catch (const Fault&) {
    return std::nullopt;
  }
}

}  // namespace lockstep::checkpoint
