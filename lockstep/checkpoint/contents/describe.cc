#include "lockstep/checkpoint/contents/describe.h"

#include <cmath>

#include "lockstep/base/hash.h"
#include "lockstep/checkpoint/contents/statistics.h"
#include "lockstep/checkpoint/formats/dtype.h"

namespace lockstep::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

std::string hexadecimal(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

Json number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json plain(std::monostate) { return nullptr; }
Json plain(bool value) { return value; }
Json plain(int64_t value) { return value; }
Json plain(double value) { return number(value); }
Json plain(const std::string& value) { return value; }
Json plain(const Bytes& value) { return hexadecimal(value.data); }
Json plain(const Opaque& value) { return value.name; }
Json plain(const auto&) { return nullptr; }  // no plain value

// Whole numbers stay such.
Json extreme(long double value, at::ScalarType dtype) {
  if (!at::isIntegralType(dtype, /*includeBool=*/true)) return static_cast<double>(value);
  if (value < 0) return static_cast<int64_t>(value);
  return static_cast<uint64_t>(value);
}

void add_statistics(const at::Tensor& tensor, Json& leaf) {
  const Statistics found = statistics_of(tensor);
  const bool some = found.finite > 0;
  leaf["bytes"] = tensor.nbytes();
  leaf["min"] = some ? extreme(found.min, tensor.scalar_type()) : nullptr;
  leaf["max"] = some ? extreme(found.max, tensor.scalar_type()) : nullptr;
  leaf["mean"] = some ? Json(found.mean) : nullptr;
  leaf["std"] = std::isnan(found.deviation) ? nullptr : Json(found.deviation);
  leaf["nan"] = found.nan;
  leaf["inf"] = found.inf;
}

Json tensor_json(const at::Tensor& tensor, bool statistics) {
  Json shape = Json::array();
  for (const int64_t size : tensor.sizes()) shape.push_back(size);
  Json leaf = {{"dtype", dtype_name(tensor.scalar_type())}, {"shape", shape}, {"sha256", tensor_sha256(tensor)}};
  if (statistics) add_statistics(tensor, leaf);
  return leaf;
}

}  // namespace

std::string tensor_sha256(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().cpu().contiguous();
  Sha256 hash;
  hash.update(dense.const_data_ptr(), dense.nbytes());
  return hash.hex();
}

Json plain_json(const Value& value) {
  return std::visit([](const auto& content) { return plain(content); }, value.content());
}

Json describe(const Value& value, const DescribeOptions& options) {
  Json leaves = Json::object();
  // ordered_json looks a key up from the front; appending to its underlying vector keeps large files linear.
  auto& object = static_cast<Json::object_t::Container&>(leaves.get_ref<Json::object_t&>());
  for_each_leaf(value, [&](const std::string& path, const Value& leaf) {
    if (!options.only.takes(path)) return;
    const auto* tensor = leaf.get_if<at::Tensor>();
    const char* key = leaf.get_if<Opaque>() != nullptr ? "opaque" : "value";
    object.emplace_back(path,
                        tensor != nullptr ? tensor_json(*tensor, options.statistics) : Json{{key, plain_json(leaf)}});
  });
  return leaves;
}

}  // namespace lockstep::checkpoint
