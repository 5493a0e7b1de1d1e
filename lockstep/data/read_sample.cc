#include "lockstep/data/read_sample.h"

#include <cstring>
#include <new>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/data/sample_rows.h"

namespace lockstep::data {
namespace {

void fill(std::span<const at::Tensor> rows, int byte) {
  for (const at::Tensor& row : rows) {
    if (row.nbytes() > 0) std::memset(row.mutable_data_ptr(), byte, row.nbytes());
  }
}

const char* bytes_in(const at::Tensor& row) { return static_cast<const char*>(row.const_data_ptr()); }

void check_encoded(const Dataset& dataset, const Field& field) {
  if (field.encoded == 0 || (field.encoded > 0 && field.dtype == at::kByte && field.shape.size() == 3)) return;
  throw ConfigError(dataset.description(), ": the field ", field.name,
                    " comes encoded, and is no uint8 image [C, H, W]");
}

void check_table(const Dataset& dataset, const Field& field) {
  if (!field.table.defined()) return;
  const auto refuse = [&](const auto&... why) {
    throw ConfigError(dataset.description(), ": the field ", field.name, " has a table for bytes, ", why...);
  };
  if (field.dtype != at::kByte) refuse("and its values are ", field.dtype, ": they would be normalised twice");
  if (field.shape.size() != 3) refuse("and is no image [C, H, W]");
  if (field.table.sizes() != at::IntArrayRef({field.shape[0], 256}) || !at::isFloatingType(field.table.scalar_type())) {
    refuse(field.table.scalar_type(), ' ', field.table.sizes(), ": expected a floating-point type and [",
           field.shape[0], ", 256]");
  }
}

}  // namespace

void check_fields(const Dataset& dataset) {
  const std::vector<Field> fields = dataset.fields();
  if (fields.empty() || fields.front().name != "data") {
    throw ConfigError(dataset.description(), ": the first of a data set's fields is named data, ",
                      fields.empty() ? "and this one has none" : cat("not '", fields.front().name, "'"));
  }
  std::set<std::string> names;
  for (const Field& field : fields) {
    if (!names.insert(field.name).second) {
      throw ConfigError(dataset.description(), ": two fields are named ", field.name, "; each has a name of its own");
    }
    check_encoded(dataset, field);
    check_table(dataset, field);
  }
}

void read_sample(const Dataset& dataset, const SampleRead& sample, std::span<const at::Tensor> rows, ReadStats& stats) {
  const PlainTensors plain;
  try {
    dataset.read(sample.index, sample.draw, rows, stats);
  } catch (const Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw IoError(dataset.name_of(sample.index), ": no memory is left to read it");
  } catch (const std::exception& error) {
    throw DataError(dataset.name_of(sample.index), ": ", first_line(error.what()));
  }
}

void read_sample_twice(const Dataset& dataset, const SampleRead& sample, std::span<const at::Tensor> rows,
                       ReadStats& stats) {
  ReadStats not_counted;
  fill(rows, 0x00);
  read_sample(dataset, sample, rows, not_counted);
  std::vector<std::vector<char>> before;
  for (const at::Tensor& row : rows) before.emplace_back(bytes_in(row), bytes_in(row) + row.nbytes());
  fill(rows, 0xff);
  read_sample(dataset, sample, rows, stats);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (before[i].empty() || std::memcmp(before[i].data(), bytes_in(rows[i]), before[i].size()) == 0) continue;
    throw ConfigError(dataset.description(), ": ", dataset.name_of(sample.index),
                      " reads differently the second time: ", "does read() write all of ", dataset.fields()[i].name,
                      ", and by the index and the draw alone?");
  }
}

}  // namespace lockstep::data
