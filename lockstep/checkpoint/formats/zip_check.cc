#include "lockstep/checkpoint/formats/zip_check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/byte_cursor.h"
#include "lockstep/checkpoint/formats/printable.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::string_view_literals;

// The records are those of PKWARE's APPNOTE.TXT, 4.3.12 to 4.3.16 and 4.5.3.
constexpr auto kEntry = "PK\1\2"sv, kEnd = "PK\5\6"sv, kEnd64 = "PK\6\6"sv, kLocator64 = "PK\6\7"sv;
constexpr uint64_t kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20, kLocalHeaderBytes = 30;
constexpr uint64_t kMaxComment = 65535;
constexpr uint32_t kIn64 = 0xffffffff;
constexpr uint16_t kIn64Count = 0xffff, kZip64Field = 1, kEncrypted = 1, kUnix = 3;

// In memory, without the names, of which there are a few copies.
constexpr uint64_t kKeptBytes = 560;
constexpr uint64_t kNamesKept = 4;

struct Directory {
  uint64_t entries = 0, bytes = 0, offset = 0;
  bool ends_the_file = false;  // its record has no more behind it than it says
};

struct Entry {
  std::string_view name;
  uint64_t begin = 0, end = 0;  // of its header and content in the file
};

std::string read_range(const std::string& path, const InputFile& file, uint64_t offset, uint64_t bytes) {
  std::string text(bytes, '\0');
  read_at(file.fd.get(), path, offset, text.data(), bytes);
  return text;
}

// Takes the numbers of the zip64 record that the locator names in place of the short ones.
void read_end64(const std::string& path, const InputFile& file, std::string_view locator, Directory& found) {
  ByteCursor cursor(locator.substr(kLocator64.size() + 4));
  const auto offset = cursor.number<uint64_t>();
  if (file.bytes < kEnd64Bytes || offset > file.bytes - kEnd64Bytes) return;
  const std::string record = read_range(path, file, offset, kEnd64Bytes);
  if (!record.starts_with(kEnd64)) return;
  ByteCursor end(std::string_view(record).substr(32));
  found.entries = end.number<uint64_t>();
  found.bytes = end.number<uint64_t>();
  found.offset = end.number<uint64_t>();
}

// What the record at `place` of the file's last bytes says.
Directory read_end(const std::string& path, const InputFile& file, std::string_view tail, size_t place) {
  if (tail.size() - place < kEndBytes) return {};
  ByteCursor cursor(tail.substr(place + 10));
  Directory found;
  found.entries = cursor.number<uint16_t>();
  found.bytes = cursor.number<uint32_t>();
  found.offset = cursor.number<uint32_t>();
  found.ends_the_file = cursor.number<uint16_t>() == tail.size() - place - kEndBytes;
  const bool in_64 = found.entries == kIn64Count || found.bytes == kIn64 || found.offset == kIn64;
  const bool has_locator = place >= kLocatorBytes && tail.substr(place - kLocatorBytes).starts_with(kLocator64);
  if (in_64 && has_locator) read_end64(path, file, tail.substr(place - kLocatorBytes, kLocatorBytes), found);
  return found;
}

// All records that libzip may take for the directory's.
std::vector<Directory> find_directories(const std::string& path, const InputFile& file) {
  const uint64_t looked_at = std::min(file.bytes, kEndBytes + kMaxComment + kLocatorBytes);
  const std::string tail = read_range(path, file, file.bytes - looked_at, looked_at);
  std::vector<Directory> all;
  for (size_t place = tail.find(kEnd); place != std::string::npos; place = tail.find(kEnd, place + 1)) {
    all.push_back(read_end(path, file, tail, place));
  }
  return all;
}

// A writer ends the file with one. Each that lies within the file would be read, by libzip too.
void check_count(const std::string& path, const InputFile& file, const std::vector<Directory>& all) {
  constexpr auto kMostByChance = 4;  // four letters of a tensor
  const auto ends = std::ranges::count_if(all, [](const Directory& each) { return each.ends_the_file; });
  const auto within = std::ranges::count_if(
      all, [&](const Directory& each) { return each.bytes <= file.bytes && each.offset <= file.bytes - each.bytes; });
  if (ends <= 1 && within <= kMostByChance) return;
  throw DataError(path, ": a zip archive that ends with ", std::max(ends, within), " directories, of which it has one");
}

void charge(const std::string& path, const InputFile& file, const std::vector<Directory>& all, MemoryBudget& budget) {
  uint64_t entries = 0, bytes = 0;
  for (const Directory& directory : all) {
    entries = std::max(entries, directory.entries);
    bytes = std::max(bytes, directory.bytes);
  }
  // A directory that is larger than the file, or has no room for its entries, is refused by libzip.
  bytes = std::min(bytes, file.bytes);
  entries = std::min(entries, bytes / kEntryBytes);
  try {
    budget.charge(entries * kKeptBytes);
    budget.charge((bytes - entries * kEntryBytes) * kNamesKept);
  } catch (const Fault& fault) {
    throw DataError(path, ": a zip archive whose directory of ", entries, " entries ", fault.text);
  }
}

void read_zip64(ByteCursor extra, uint64_t& unpacked, uint64_t& packed, uint64_t& header) {
  while (extra.left() >= 4) {
    const auto id = extra.number<uint16_t>();
    ByteCursor field(extra.take(extra.number<uint16_t>()));
    for (uint64_t* number : {&unpacked, &packed, &header}) {
      if (id == kZip64Field && *number == kIn64) *number = field.number<uint64_t>();
    }
  }
}

Entry read_entry(const std::string& path, const InputFile& file, ByteCursor& cursor) {
  if (cursor.take(kEntry.size()) != kEntry) throw Fault{"another record"};
  const auto made_by = cursor.number<uint16_t>();
  cursor.take(2);
  const auto flags = cursor.number<uint16_t>();
  cursor.take(10);
  uint64_t packed = cursor.number<uint32_t>(), unpacked = cursor.number<uint32_t>();
  const auto name_bytes = cursor.number<uint16_t>(), extra_bytes = cursor.number<uint16_t>(),
             note_bytes = cursor.number<uint16_t>();
  cursor.take(4);
  const mode_t mode = cursor.number<uint32_t>() >> 16;
  uint64_t header = cursor.number<uint32_t>();
  const std::string_view name = cursor.take(name_bytes);
  read_zip64(ByteCursor(cursor.take(extra_bytes)), unpacked, packed, header);
  cursor.take(note_bytes);

  const auto refuse = [&](const char* what) { throw DataError(path, ": its entry ", printable(name), what); };
  if (name.find('\0') != std::string_view::npos) refuse(" has a name with a NUL in it");
  if ((flags & kEncrypted) != 0) refuse(" is encrypted");
  if (made_by >> 8 == kUnix && S_ISLNK(mode)) refuse(" is a symbolic link");
  if (header > file.bytes || packed > file.bytes) throw Fault{"outside the file"};
  return {.name = name, .begin = header, .end = header + kLocalHeaderBytes + name_bytes + packed};
}

// The headers of large entries are far apart. The disk fetches them together, where libzip would wait for each.
void ask_for_headers(const InputFile& file, const std::vector<Entry>& entries) {
  constexpr uint64_t kLarge = 256 << 10;
  for (const Entry& entry : entries) {
    if (entry.end - entry.begin < kLarge) continue;
    posix_fadvise(file.fd.get(), static_cast<off_t>(entry.begin), kLocalHeaderBytes, POSIX_FADV_WILLNEED);
  }
}

void check_entries(const std::string& path, const InputFile& file, const Directory& directory) {
  if (directory.bytes > file.bytes || directory.offset > file.bytes - directory.bytes) return;
  const std::string bytes = read_range(path, file, directory.offset, directory.bytes);
  ByteCursor cursor(bytes);
  std::vector<Entry> entries;
  try {
    while (cursor.left() > 0) entries.push_back(read_entry(path, file, cursor));
  } catch (const Fault&) {  // damaged
    return;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.begin < b.begin; });
  ask_for_headers(file, entries);
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i - 1].end <= entries[i].begin) continue;
    throw DataError(path, ": its entries ", printable(entries[i - 1].name), " and ", printable(entries[i].name),
                    " overlap");
  }
}

}  // namespace

void check_zip_directory(const std::string& path, const InputFile& file, MemoryBudget& budget) {
  const std::vector<Directory> directories = find_directories(path, file);
  check_count(path, file, directories);
  charge(path, file, directories, budget);
  for (const Directory& directory : directories) {
    if (directory.ends_the_file) check_entries(path, file, directory);
  }
}

}  // namespace lockstep::checkpoint
