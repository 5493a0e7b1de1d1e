#include "lockstep/checkpoint/formats/safetensors_reader.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/byte_cursor.h"
#include "lockstep/checkpoint/formats/safetensors_header.h"
#include "lockstep/checkpoint/formats/storage_source.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"
#include "lockstep/checkpoint/formats/tensor_geometry.h"

namespace lockstep::checkpoint {
namespace {

constexpr uint64_t kLengthBytes = 8;

TensorGeometry contiguous(const std::vector<int64_t>& sizes) {
  TensorGeometry geometry{.offset = 0, .sizes = sizes, .strides = std::vector<int64_t>(sizes.size())};
  int64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    geometry.strides[d] = stride;
    stride *= std::max<int64_t>(sizes[d], 1);
  }
  return geometry;
}

uint64_t read_length(const std::string& path, const InputFile& file) {
  uint64_t length = 0;
  if (file.bytes < kLengthBytes) throw DataError(path, ": too short for a safetensors file");
  read_at(file.fd.get(), path, 0, &length, kLengthBytes);
  if (length > kMaxSafetensorsHeader) {
    throw DataError(path, ": a header of ", length, " bytes; a safetensors file's has at most ", kMaxSafetensorsHeader);
  }
  if (length > file.bytes - kLengthBytes) {
    throw DataError(path, ": a header of ", length, " bytes, and the file has ", file.bytes - kLengthBytes,
                    "; it is cut short, or hostile");
  }
  return length;
}

}  // namespace

bool is_safetensors(std::string_view start) {
  // The two high bytes of a length that any file could have, and the brace that begins the header.
  return start.size() > kLengthBytes && start[6] == '\0' && start[7] == '\0' && start[kLengthBytes] == '{';
}

Value open_safetensors(const std::string& path, const InputFile& file) {
  const uint64_t length = read_length(path, file), data = kLengthBytes + length;
  std::string json(length, '\0');
  read_at(file.fd.get(), path, kLengthBytes, json.data(), length);
  SafetensorsHeader header;
  try {
    header = read_safetensors_header(json, file.bytes - data);
  } catch (const Fault& fault) {
    throw DataError(path, ": ", fault.text);
  }
  json = {};
  Dict root;
  if (header.metadata) {
    Dict texts;
    for (auto& [name, text] : *header.metadata) texts.set(std::move(name), std::move(text));
    root.set(std::string(kMetadata), std::move(texts));
  }
  const auto stored = std::make_shared<StoredFile>(path, file);
  for (SafetensorsEntry& entry : header.tensors) {
    const uint64_t bytes = entry.end - entry.begin;
    c10::Storage storage =
        bytes == 0 ? allocate_storage(0)
                   : make_stored({.file = stored, .name = entry.name, .offset = data + entry.begin, .bytes = bytes});
    root.set(std::move(entry.name), tensor_over(storage, entry.dtype, contiguous(entry.shape)));
  }
  return root;
}

}  // namespace lockstep::checkpoint
