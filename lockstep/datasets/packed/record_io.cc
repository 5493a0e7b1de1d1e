#include "lockstep/datasets/packed/record_io.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <system_error>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/datasets/files/listing.h"
#include "lockstep/datasets/packed/format.h"

namespace lockstep::datasets {
namespace {

constexpr uint32_t kMagic = 0xced7230a;
constexpr uint64_t kPartHead = 8, kImageHead = 24;  // bytes
constexpr uint32_t kWhole = 0, kFirst = 1, kMiddle = 2, kLast = 3;
constexpr float kMostClasses = 1 << 24;  // whole numbers that a float has
constexpr uint64_t kMostRecord = uint64_t{1} << 30;

}  // namespace

RecordIo::RecordIo(const std::string& path) : file_(path) {}

void RecordIo::throw_damaged(uint64_t at, const std::string& what) const {
  throw DataError(shown(path()), ": byte ", at, ": ", what, "; the file is damaged or cut short: get it again");
}

RecordIo::Part RecordIo::part_at(uint64_t offset, std::vector<uint8_t>& memory) const {
  if (file_.size() - offset < kPartHead) throw_damaged(offset, "the file ends within a record's head");
  const auto head = file_.part(offset, kPartHead, memory);
  if (number_at<uint32_t>(head, 0) != kMagic) throw_damaged(offset, "no RecordIO record begins here");
  const auto flag_and_length = number_at<uint32_t>(head, 4);
  Part part{.flag = flag_and_length >> 29, .length = flag_and_length & ((1u << 29) - 1), .data = offset + kPartHead};
  if (part.flag > kLast) throw_damaged(offset + 4, "a part of a record that is neither first, middle nor last");
  if (part.length > file_.size() - part.data)
    throw_damaged(part.data, cat("a record of ", part.length, " bytes is cut short"));
  part.next = std::min(file_.size(), part.data + (uint64_t{part.length} + 3) / 4 * 4);
  return part;
}

// The class stands in the first part, unless an image's number happens to be the magic: such a record is refused as too
// short.
int32_t RecordIo::class_of(const Part& first, std::vector<uint8_t>& memory) const {
  if (first.length < kImageHead) throw_damaged(first.data, "a record too short for an image");
  const auto head = file_.part(first.data, std::min<uint64_t>(first.length, kImageHead + 4), memory);
  const auto labels = number_at<uint32_t>(head, 0);
  if (labels > 1) {
    throw DataError(shown(path()), ": byte ", first.data, ": an image with ", labels,
                    " labels; expected are images with one class each");
  }
  if (labels == 1 && head.size() < kImageHead + 4) throw_damaged(first.data, "a record too short for its label");
  const auto label = std::bit_cast<float>(number_at<uint32_t>(head, labels == 1 ? kImageHead : 4));
  if (!(label >= 0 && label < kMostClasses) || label != static_cast<float>(static_cast<int32_t>(label))) {
    throw DataError(shown(path()), ": byte ", first.data, ": the label ", label,
                    " is no class; expected are whole numbers from 0");
  }
  return static_cast<int32_t>(label);
}

std::vector<RecordPlace> RecordIo::scan() const {
  std::vector<RecordPlace> places;
  std::vector<uint8_t> memory;
  for (uint64_t at = 0; at < file_.size();) {
    Part part = part_at(at, memory);
    RecordPlace place{.offset = at};
    if (part.flag != kWhole && part.flag != kFirst) throw_damaged(at, "a record begins with a later part of one");
    place.class_number = class_of(part, memory);
    for (bool ended = part.flag == kWhole; !ended; ended = part.flag == kLast) {
      if (part.next == file_.size()) throw_damaged(at, "the last part of a record is missing");
      part = part_at(part.next, memory);
      if (part.flag != kMiddle && part.flag != kLast) throw_damaged(at, "the last part of a record is missing");
    }
    place.bytes = part.next - at;
    at = part.next;
    places.push_back(place);
  }
  if (places.empty()) throw DataError(shown(path()), ": holds no records; get it again");
  check_index(places.size());
  return places;
}

// x.idx has a line for each record: its number, a tab, its offset.
void RecordIo::check_index(size_t records) const {
  const std::string index = std::filesystem::path(path()).replace_extension(".idx").string();
  std::error_code missing;
  if (!std::filesystem::is_regular_file(index, missing)) return;
  std::vector<uint8_t> memory;
  const auto bytes = read_whole(index, memory);
  size_t lines = static_cast<size_t>(std::count(bytes.begin(), bytes.end(), '\n'));
  if (!bytes.empty() && bytes.back() != '\n') ++lines;
  if (lines == records) return;
  throw DataError(shown(path()), ": has ", records, " records, and ", shown(index), " lists ", lines,
                  "; one of them is not whole: get both again");
}

std::span<const uint8_t> RecordIo::image(const RecordPlace& place, std::vector<uint8_t>& memory) const {
  if (place.bytes > kMostRecord) throw_damaged(place.offset, cat("a record of ", human_bytes(place.bytes)));
  file_.part(place.offset, place.bytes, memory);
  // Joins the parts in place: the data of a later one move forward to the end of what is joined, behind the magic.
  size_t joined = 0;
  for (size_t at = 0; at < memory.size();) {
    if (memory.size() - at < kPartHead || number_at<uint32_t>(memory, at) != kMagic) {
      throw_damaged(place.offset + at, "no RecordIO record begins here");
    }
    const size_t length = number_at<uint32_t>(memory, at + 4) & ((1u << 29) - 1);
    const size_t data = at + kPartHead;
    if (length > memory.size() - data) throw_damaged(place.offset + data, "a record is cut short");
    if (at > 0) {
      for (size_t i = 0; i < 4; ++i) memory[joined++] = static_cast<uint8_t>(kMagic >> (8 * i));
    }
    std::copy(memory.begin() + static_cast<std::ptrdiff_t>(data),
              memory.begin() + static_cast<std::ptrdiff_t>(data + length),
              memory.begin() + static_cast<std::ptrdiff_t>(joined));
    joined += length;
    at = data + (length + 3) / 4 * 4;
  }
  const auto record = std::span<const uint8_t>(memory).first(joined);
  if (record.size() < kImageHead) throw_damaged(place.offset, "a record too short for an image");
  const size_t head = kImageHead + 4 * uint64_t{number_at<uint32_t>(record, 0)};
  if (head > record.size()) throw_damaged(place.offset, "a record too short for its labels");
  return record.subspan(head);
}

}  // namespace lockstep::datasets
