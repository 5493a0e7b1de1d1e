#include "lockstep/datasets/packed/shard_reader.h"

#include <algorithm>
#include <cstring>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/datasets/files/listing.h"

namespace lockstep::datasets {

void ShardReader::throw_damaged(uint64_t at, const std::string& what) const {
  throw DataError(shown(path()), ": byte ", at, ": ", what,
                  "; the shard is damaged or cut short: get it, or pack it, again");
}

void ShardReader::throw_damaged_record(int64_t record, const char* what) const {
  throw DataError(shown(path()), ": record ", record, " (", shown(name_of(record)), ") at byte ", entry(record).offset,
                  ": ", what, "; the shard is damaged: get it, or pack it, again");
}

ShardReader::ShardReader(const std::string& path) : file_(path) {
  std::vector<uint8_t> head;
  if (file_.size() < kShardAlignment) throw_damaged(file_.size(), "the file ends within its head");
  file_.part(0, kShardAlignment, head);
  if (std::memcmp(head.data(), kShardMagic.data(), kShardMagic.size()) != 0) {
    throw DataError(shown(path), ": no shard of packed data, which begins with ", kShardMagic);
  }
  const auto version = number_at<uint32_t>(head, 4);
  if (version != kShardVersion) {
    throw DataError(shown(path), ": packed data of version ", version, ", and this program reads version ",
                    kShardVersion, "; pack it again");
  }
  if (number_at<uint64_t>(head, kHashedHeadBytes) != xxh3(std::span(head).first(kHashedHeadBytes))) {
    throw_damaged(0, "the head's checksum is not its own");
  }
  read_index(number_at<uint64_t>(head, 8), number_at<uint64_t>(head, 16));
}

void ShardReader::read_index(uint64_t records, uint64_t offset) {
  const uint64_t room = file_.size() - std::min(file_.size(), offset);
  if (offset < kShardAlignment || room < 8 || records > (room - 8) / kIndexEntryBytes) {
    throw_damaged(offset,
                  cat("an index of ", records, " records is to be here, and the file has ", file_.size(), " bytes"));
  }
  const size_t bytes = static_cast<size_t>(records) * kIndexEntryBytes;
  std::vector<uint8_t> index;
  file_.part(offset, bytes + 8, index);
  if (number_at<uint64_t>(index, bytes) != xxh3(std::span(index).first(bytes))) {
    throw_damaged(offset, "the index's checksum is not its own");
  }
  index_.reserve(records);
  for (size_t at = 0; at < bytes; at += kIndexEntryBytes) {
    const Entry entry{number_at<uint64_t>(index, at), number_at<uint32_t>(index, at + 8),
                      number_at<int32_t>(index, at + 12), number_at<uint64_t>(index, at + 16)};
    const bool lies_within = entry.offset >= kShardAlignment && entry.offset <= offset &&
                             entry.bytes <= offset - entry.offset && entry.offset % kShardAlignment == 0;
    if (!lies_within || entry.bytes < kRecordHeadBytes + 4) {
      throw_damaged(offset + at, cat("record ", index_.size(), " does not lie where records do"));
    }
    index_.push_back(entry);
  }
  read_names(offset + bytes + 8);
}

void ShardReader::read_names(uint64_t offset) {
  const uint64_t room = file_.size() - offset;
  if (room < 12 || room > UINT32_MAX) throw_damaged(offset, "the names of its records are to be here");
  file_.part(offset, room, names_);
  const size_t end = names_.size() - 8;
  if (number_at<uint64_t>(names_, end) != xxh3(std::span(names_).first(end))) {
    throw_damaged(offset, "the names' checksum is not their own");
  }
  const auto count = number_at<uint32_t>(names_, 0);
  size_t at = 4;
  for (uint32_t i = 0; i < count; ++i) {
    if (end - at < 4 || number_at<uint32_t>(names_, at) > end - at - 4)
      throw_damaged(offset + at, "a name is cut short");
    const Place place{static_cast<uint32_t>(at + 4), number_at<uint32_t>(names_, at)};
    places_.push_back(place);
    at += 4 + place.length;
  }
  if (at != end || places_.size() < index_.size()) throw_damaged(offset, "there are not as many names as records");
}

std::string ShardReader::name_at(size_t number) const {
  const Place& place = places_.at(number);
  return {reinterpret_cast<const char*>(names_.data()) + place.begin, place.length};
}

std::string ShardReader::name_of(int64_t record) const {
  return name_at(places_.size() - index_.size() + static_cast<size_t>(record));
}

std::vector<std::string> ShardReader::class_names() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < places_.size() - index_.size(); ++i) names.push_back(name_at(i));
  return names;
}

PackedRecord ShardReader::read(int64_t record, std::vector<uint8_t>& memory) const {
  const Entry& place = entry(record);
  const auto bytes = file_.part(place.offset, place.bytes, memory);
  if (number_at<uint64_t>(bytes, 0) != xxh3(bytes.subspan(8))) {
    throw_damaged_record(record, "its checksum is not its own");
  }
  PackedRecord read{.class_number = number_at<int32_t>(bytes, 8),
                    .width = number_at<uint16_t>(bytes, 12),
                    .height = number_at<uint16_t>(bytes, 14),
                    .codec = static_cast<Codec>(bytes[16]),
                    .image = {},
                    .mask = {}};
  const size_t fields = bytes[17], head = kRecordHeadBytes + 4 * fields;
  if (bytes[16] >= kCodecs || fields < 1 || fields > 2 || bytes.size() < head) {
    throw_damaged_record(record, "it is of a kind that is not known");
  }
  if (read.class_number != place.class_number) throw_damaged_record(record, "its class is not the index's");
  const uint64_t image = number_at<uint32_t>(bytes, kRecordHeadBytes);
  const uint64_t mask = fields == 2 ? number_at<uint32_t>(bytes, kRecordHeadBytes + 4) : 0;
  if (head + image + mask != bytes.size()) throw_damaged_record(record, "its parts are not as long as it is");
  read.image = bytes.subspan(head, image);
  read.mask = bytes.subspan(head + image, mask);
  return read;
}

void ShardReader::will_need(const std::vector<int64_t>& records) const {
  for (size_t i = 0; i < records.size();) {
    const uint64_t begin = entry(records[i]).offset;
    uint64_t end = begin + entry(records[i]).bytes;
    for (++i; i < records.size() && entry(records[i]).offset < end + kShardAlignment; ++i) {
      end = entry(records[i]).offset + entry(records[i]).bytes;
    }
    file_.will_need(begin, end - begin);
  }
}

}  // namespace lockstep::datasets
