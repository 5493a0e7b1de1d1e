#include "lockstep/data/dataset.h"

#include "lockstep/base/error.h"

namespace lockstep::data {

ReadStats& ReadStats::operator+=(const ReadStats& other) {
  read_ns += other.read_ns;
  decode_ns += other.decode_ns;
  transform_ns += other.transform_ns;
  bytes += other.bytes;
  return *this;
}

std::vector<int64_t> row_shape(const Field& field) {
  return field.encoded > 0 ? std::vector<int64_t>{field.encoded} : field.shape;
}

std::string Dataset::name_of(int64_t index) const { return cat("sample ", index); }

void check_index(int64_t index, int64_t size) {
  if (index < 0 || index >= size) throw BugError("sample ", index, " was asked of a data set of ", size, " samples");
}

}  // namespace lockstep::data
