#include "lockstep/checkpoint/formats/pickle_writer.h"

#include <bit>
#include <limits>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/dtype.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::string_view_literals;

std::string latin1_as_utf8(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xc0 | byte >> 6);
      text += static_cast<char>(0x80 | (byte & 0x3f));
    }
  }
  return text;
}

// Writes without a memo, for a file repeats nothing but short names.
class PickleWriter {
 public:
  explicit PickleWriter(const StoragePlan& plan) : plan_(plan) {}

  std::string write(const Value& value) && {
    out_ = "\x80\x02";
    put(value);
    return std::move(out_ += '.');
  }

 private:
  template <typename T>
  void raw(T number) {
    out_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void global(std::string_view module, std::string_view name) {
    out_.append("c").append(module).append("\n").append(name).append("\n");
  }

  void put(const Value& value) {
    std::visit([&](const auto& content) { put(content); }, value.content());
  }
  void put(std::monostate) { out_ += 'N'; }
  void put(bool boolean) { out_ += boolean ? '\x88' : '\x89'; }
  void put(int64_t number) {
    if (number >= 0 && number < 256) {
      out_ += 'K';
      raw(static_cast<uint8_t>(number));
    } else if (number == static_cast<int32_t>(number)) {
      out_ += 'J';
      raw(static_cast<int32_t>(number));
    } else {
      out_ += "\x8a\x08"sv;
      raw(number);
    }
  }
  void put(double number) {
    out_ += 'G';
    raw(__builtin_bswap64(std::bit_cast<uint64_t>(number)));
  }
  void put(std::string_view text) {
    if (text.size() > std::numeric_limits<uint32_t>::max()) throw BugError("a string of ", human_bytes(text.size()));
    out_ += 'X';
    raw(static_cast<uint32_t>(text.size()));
    out_ += text;
  }
  void put(const std::string& text) { put(std::string_view(text)); }
  void put(const Bytes& bytes) {
    global("_codecs", "encode");
    put(std::string_view(latin1_as_utf8(bytes.data)));
    put("latin1"sv);
    out_ += "\x86R"sv;
  }
  void put(const Key& key) {
    std::visit([&](const auto& content) { put(content); }, key);
  }
  void put(const List& items) {
    out_ += "](";
    for (const Value& item : items) put(item);
    out_ += 'e';
  }
  void put(const Tuple& tuple) {
    out_ += '(';
    for (const Value& item : tuple.items) put(item);
    out_ += 't';
  }
  void put(const Dict& dict) {
    out_ += "}(";
    for (const auto& [key, value] : dict) {
      put(key);
      put(value);
    }
    out_ += 'u';
  }
  void put(at::IntArrayRef numbers) {
    out_ += '(';
    for (const int64_t number : numbers) put(number);
    out_ += 't';
  }

  // _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks); types without a storage class of their own
  // take version 3 and name the type.
  void put(const at::Tensor& tensor) {
    const auto [number, offset] = plan_.view(tensor);
    const bool typed = !storage_class(tensor.scalar_type()).empty();
    global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    out_ += '(';
    put_storage(number, typed);
    put(offset);
    put(tensor.sizes());
    put(tensor.strides());
    put(false);
    global("collections", "OrderedDict");
    out_ += ")R";
    if (!typed) global("torch", dtype_name(tensor.scalar_type()));
    out_ += "tR";
  }

  // The persistent id ('storage', class, key, location, elements); an untyped storage's elements are bytes.
  void put_storage(size_t number, bool typed) {
    const StoragePlan::Storage& storage = plan_.storages()[number];
    out_ += '(';
    put("storage"sv);
    if (typed) {
      global("torch", storage_class(storage.dtype()));
    } else {
      global("torch.storage", "UntypedStorage");
    }
    put(std::string_view(std::to_string(number)));
    put("cpu"sv);
    put(typed ? storage.elements() : static_cast<int64_t>(storage.bytes().size()));
    out_ += "tQ";
  }

  const StoragePlan& plan_;
  std::string out_;
};

}  // namespace

std::string write_pickle(const Value& value, const StoragePlan& plan) { return PickleWriter(plan).write(value); }

}  // namespace lockstep::checkpoint
