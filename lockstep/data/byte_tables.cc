#include "lockstep/data/byte_tables.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::data {
namespace {

constexpr int64_t kEntries = 256;  // of a channel

// A view of all values, one after the other as they lie in memory.
at::Tensor in_memory_order(const at::Tensor& images, at::MemoryFormat format) {
  return format == at::MemoryFormat::ChannelsLast ? images.permute({0, 2, 3, 1}).view(-1) : images.view(-1);
}

}  // namespace

at::Tensor look_up(const at::Tensor& images, const at::Tensor& table) {
  if (images.scalar_type() != at::kByte) {
    throw BugError("images are normalised twice: their values are ", images.scalar_type(), ", no bytes");
  }
  if (images.dim() != 4 || table.sizes() != at::IntArrayRef({images.size(1), kEntries})) {
    throw BugError("images ", images.sizes(), " are normalised by a table ", table.sizes());
  }
  const at::MemoryFormat format = images.suggest_memory_format();
  const at::Tensor numbers = table.contiguous().view(-1);
  const at::Tensor first_entry =
      at::arange(0, table.numel(), kEntries, table.options().dtype(at::kInt)).view({-1, 1, 1});
  at::Tensor result = at::empty(images.sizes(), table.options(), format);
  const int64_t index_bytes = images.size(1) * images.size(2) * images.size(3) * int64_t{sizeof(int32_t)};
  const int64_t at_once = std::max<int64_t>(1, kLookUpBytes / std::max<int64_t>(1, index_bytes));
  for (int64_t row = 0; row < images.size(0); row += at_once) {
    const int64_t rows = std::min(at_once, images.size(0) - row);
    const at::Tensor entries = images.narrow(0, row, rows).add(first_entry).contiguous(format);
    at::Tensor to = in_memory_order(result.narrow(0, row, rows), format);
    at::index_select_out(to, numbers, 0, in_memory_order(entries, format));
  }
  return result;
}

ByteTables::ByteTables(const std::vector<Field>& fields, c10::Device device) {
  for (const Field& field : fields) {
    if (field.table.defined()) tables_.emplace_back(field.name, field.table.to(device));
  }
}

void ByteTables::apply(Batch& batch) const {
  for (const auto& [name, table] : tables_) {
    at::Tensor& images = batch[name];
    if (images.scalar_type() != at::kByte) {
      throw ConfigError("a batch's ", name, " is normalised twice: its values are ", images.scalar_type(),
                        ", no bytes; apply tables once");
    }
    images = look_up(images, table);
  }
}

bool has_tables(const std::vector<Field>& fields) {
  return std::any_of(fields.begin(), fields.end(), [](const Field& field) { return field.table.defined(); });
}

bool has_encoded(const std::vector<Field>& fields) {
  return std::any_of(fields.begin(), fields.end(), [](const Field& field) { return field.encoded > 0; });
}

std::vector<Field> looked_up(std::vector<Field> fields) {
  for (Field& field : fields) {
    if (field.table.defined()) field.dtype = field.table.scalar_type();
    field.table.reset();
    field.encoded = 0;
  }
  return fields;
}

}  // namespace lockstep::data
