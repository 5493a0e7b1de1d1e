#include "lockstep/datasets/packed/shard_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/datasets/files/file_errors.h"

namespace lockstep::datasets {
namespace {

void append_bytes(std::vector<uint8_t>& to, std::span<const uint8_t> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void write_at(int fd, uint64_t at, std::span<const uint8_t> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw_write_error(path, errno);
    at += static_cast<uint64_t>(n);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

}  // namespace

ShardWriter::ShardWriter(const std::string& folder, const std::string& file)
    : path_(folder + "/" + file),
      file_{.file = file},
      descriptor_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (!descriptor_) throw_write_error(path_, errno);
  at_ = kShardAlignment;  // the head comes last
}

void ShardWriter::write(std::span<const uint8_t> bytes) {
  write_at(descriptor_.get(), at_, bytes, path_);
  hash_.add(bytes);
  at_ += bytes.size();
}

void ShardWriter::add(const PackedRecord& record, uint64_t source, const std::string& name) {
  const size_t fields = record.mask.empty() ? 1 : 2;
  const size_t bytes = kRecordHeadBytes + 4 * fields + record.image.size() + record.mask.size();
  if (bytes > UINT32_MAX) throw DataError(name, ": ", human_bytes(bytes), " are too many for a packed record");
  buffer_.clear();
  append(buffer_, uint64_t{0});
  append(buffer_, record.class_number);
  append(buffer_, record.width);
  append(buffer_, record.height);
  append(buffer_, static_cast<uint8_t>(record.codec));
  append(buffer_, static_cast<uint8_t>(fields));
  append(buffer_, uint16_t{0});
  append(buffer_, static_cast<uint32_t>(record.image.size()));
  if (fields == 2) append(buffer_, static_cast<uint32_t>(record.mask.size()));
  append_bytes(buffer_, record.image);
  append_bytes(buffer_, record.mask);
  const uint64_t hash = xxh3(std::span(buffer_).subspan(8));
  for (size_t i = 0; i < 8; ++i) buffer_[i] = static_cast<uint8_t>(hash >> (8 * i));

  append(index_, at_);
  append(index_, static_cast<uint32_t>(bytes));
  append(index_, record.class_number);
  append(index_, source);
  names_.push_back(name);
  buffer_.resize((bytes + kShardAlignment - 1) / kShardAlignment * kShardAlignment, 0);
  write(buffer_);
  ++file_.records;
}

ShardFile ShardWriter::finish(const std::vector<std::string>& class_names) {
  const uint64_t index_offset = at_;
  append(index_, xxh3(index_));
  write(index_);

  buffer_.clear();
  append(buffer_, static_cast<uint32_t>(class_names.size() + names_.size()));
  for (const auto* names : {&class_names, &std::as_const(names_)}) {
    for (const std::string& name : *names) {
      append(buffer_, static_cast<uint32_t>(name.size()));
      buffer_.insert(buffer_.end(), name.begin(), name.end());
    }
  }
  append(buffer_, xxh3(buffer_));
  write(buffer_);

  buffer_.assign(kShardMagic.begin(), kShardMagic.end());
  append(buffer_, kShardVersion);
  append(buffer_, file_.records);
  append(buffer_, index_offset);
  append(buffer_, xxh3(buffer_));
  buffer_.resize(kShardAlignment, 0);
  write_at(descriptor_.get(), 0, buffer_, path_);
  if (fsync(descriptor_.get()) != 0) throw_write_error(path_, errno);
  file_.bytes = at_;
  file_.hash = hash_.value();
  return file_;
}

}  // namespace lockstep::datasets
