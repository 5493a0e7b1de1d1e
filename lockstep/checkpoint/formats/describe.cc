#include "lockstep/checkpoint/formats/describe.h"

#include <cmath>

#include "lockstep/base/hash.h"
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

Json leaf(std::monostate) { return {{"value", nullptr}}; }
Json leaf(bool value) { return {{"value", value}}; }
Json leaf(int64_t value) { return {{"value", value}}; }
Json leaf(double value) { return {{"value", number(value)}}; }
Json leaf(const std::string& value) { return {{"value", value}}; }
Json leaf(const Bytes& value) { return {{"value", hexadecimal(value.data)}}; }
Json leaf(const at::Tensor& tensor) {
  Json shape = Json::array();
  for (const int64_t size : tensor.sizes()) shape.push_back(size);
  return {{"dtype", dtype_name(tensor.scalar_type())}, {"shape", shape}, {"sha256", tensor_sha256(tensor)}};
}

// Walks the tree and collects the leaves, each under the path that leads to it.
class Flattener {
 public:
  Json leaves = Json::object();

  void visit(const Value& value, const std::string& path) {
    std::visit([&](const auto& content) { put(content, path); }, value.content());
  }

 private:
  static std::string join(const std::string& path, const std::string& name) {
    return path.empty() ? name : path + "/" + name;
  }
  void put(const List& items, const std::string& path) {
    for (size_t i = 0; i < items.size(); ++i) visit(items[i], join(path, std::to_string(i)));
  }
  void put(const Tuple& tuple, const std::string& path) { put(tuple.items, path); }
  void put(const Dict& dict, const std::string& path) {
    for (const auto& [key, value] : dict) visit(value, join(path, key_text(key)));
  }
  // ordered_json looks a key up from the front; appending to its underlying vector keeps large files linear.
  void put(const auto& content, const std::string& path) {
    auto& object = leaves.get_ref<Json::object_t&>();
    static_cast<Json::object_t::Container&>(object).emplace_back(path, leaf(content));
  }
};

}  // namespace

std::string tensor_sha256(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().cpu().contiguous();
  Sha256 hash;
  hash.update(dense.const_data_ptr(), dense.nbytes());
  return hash.hex();
}

Json describe(const Value& value) {
  Flattener flattener;
  flattener.visit(value, "");
  return std::move(flattener.leaves);
}

}  // namespace lockstep::checkpoint
