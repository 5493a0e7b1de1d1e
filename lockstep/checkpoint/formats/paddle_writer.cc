#include "lockstep/checkpoint/formats/paddle_writer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/files/atomic_file.h"
#include "lockstep/checkpoint/formats/dtype.h"
#include "lockstep/checkpoint/formats/numpy_dtype.h"
#include "lockstep/checkpoint/formats/paddle_reader.h"
#include "lockstep/checkpoint/formats/pickle_emitter.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::string_view_literals;

bool holds_tensors(const Value& value) {
  if (value.is_tensor()) return true;
  if (const auto* dict = value.get_if<Dict>()) {
    return std::any_of(dict->begin(), dict->end(), [](const auto& entry) { return holds_tensors(entry.value); });
  }
  const List* items = value.items();
  return items != nullptr && std::any_of(items->begin(), items->end(), holds_tensors);
}

// Whether the tensors of a dict are its own values and nobody else's.
bool is_state_dict(const Dict& dict) {
  bool any = false;
  for (const auto& [key, value] : dict) {
    const bool is_tensor = value.is_tensor();
    if (!is_tensor && holds_tensors(value)) return false;
    any |= is_tensor;
  }
  return any && !dict.contains(std::string(kPaddleNames));
}

// Paddle's own names are those that a layer gives its parameters; what reads the table needs its keys alone.
Dict names_of(const Dict& state) {
  Dict names;
  for (const auto& [key, value] : state) {
    if (value.is_tensor()) names.set(key, key_text(key));
  }
  return names;
}

class PaddleWriter : public PickleEmitter {
 public:
  // `named`: whether each tensor is a tuple (name, array), as paddle.save has those that no table of names has.
  PaddleWriter(ByteSink& sink, std::string file, bool named) : sink_(sink), file_(std::move(file)), named_(named) {}

  void write(const Value& value) {
    out_ = "\x80\x04";
    put(value);
    out_ += '.';
    flush();
  }

 private:
  void put_tensor(const at::Tensor& tensor) override {
    if (named_) put(std::string_view(cat("tensor_", count_++)));
    put_array(tensor);
    if (named_) out_ += '\x86';
  }

  // _reconstruct(ndarray, (0,), b'b') with the state (1, shape, dtype, False, bytes).
  void put_array(const at::Tensor& tensor) {
    if (!tensor.defined()) throw BugError("an undefined tensor can't be saved");
    if (tensor.layout() != at::kStrided) throw BugError("only dense tensors can be saved; call to_dense() first");
    const at::Tensor dense = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous();
    put_global("numpy.core.multiarray", "_reconstruct");
    put_global("numpy", "ndarray");
    out_ += "K\0\x85"sv;
    put_bytes("b");
    out_ += "\x87R("sv;
    put(int64_t{1});
    put(dense.sizes());
    put_dtype(dense.scalar_type());
    put(false);
    put_bytes({static_cast<const char*>(dense.const_data_ptr()), dense.nbytes()});
    out_ += "tb";
  }

  // dtype('f4', False, True) with the state (3, '<', None, None, None, -1, -1, 0).
  void put_dtype(at::ScalarType dtype) {
    const std::string_view name = numpy_dtype_name(dtype == at::kBFloat16 ? at::kUInt16 : dtype);
    if (name.empty() || dtype == at::kUInt16) throw DataError(file_, ": Paddle has no tensors of ", dtype_name(dtype));
    put_global("numpy", "dtype");
    put(name);
    out_ += "\x89\x88\x87R("sv;
    put(int64_t{3});
    put(name.ends_with("1") ? "|"sv : "<"sv);
    for (int i = 0; i < 3; ++i) put_none();
    for (const int64_t number : {-1, -1, 0}) put(number);
    out_ += "tb";
  }

  void put_bytes(std::string_view bytes) override {
    constexpr size_t kBuffered = 1u << 16;
    out_ += '\x8e';
    put_raw(uint64_t{bytes.size()});
    if (bytes.size() < kBuffered) {
      out_ += bytes;
    } else {
      flush();
      sink_.write(bytes);
    }
  }

  void flush() {
    sink_.write(out_);
    out_.clear();
  }

  ByteSink& sink_;
  std::string file_;
  bool named_;
  int64_t count_ = 0;
};

}  // namespace

void write_paddle(const Value& value, ByteSink& sink, const std::string& file) {
  const auto* dict = value.get_if<Dict>();
  if (dict == nullptr || !is_state_dict(*dict)) return PaddleWriter(sink, file, /*named=*/true).write(value);
  Dict state = *dict;
  state.set(std::string(kPaddleNames), names_of(state));
  PaddleWriter(sink, file, /*named=*/false).write(state);
}

void write_paddle(const Value& value, const std::string& path, const std::function<void()>& on_progress) {
  write_atomically(
      path, [&](ByteSink& sink) { write_paddle(value, sink, path); }, on_progress);
}

}  // namespace lockstep::checkpoint
