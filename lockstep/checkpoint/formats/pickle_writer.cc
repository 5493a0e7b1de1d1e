#include "lockstep/checkpoint/formats/pickle_writer.h"

#include <utility>

#include "lockstep/checkpoint/formats/dtype.h"
#include "lockstep/checkpoint/formats/latin1.h"
#include "lockstep/checkpoint/formats/pickle_emitter.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::string_view_literals;

class PickleWriter : public PickleEmitter {
 public:
  explicit PickleWriter(const StoragePlan& plan) : plan_(plan) {}

  std::string write(const Value& value) && {
    out_ = "\x80\x02";
    put(value);
    return std::move(out_ += '.');
  }

 private:
  // _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks); types without a storage class of their own
  // take version 3 and name the type.
  void put_tensor(const at::Tensor& tensor) override {
    const auto [number, offset] = plan_.view(tensor);
    const bool typed = !storage_class(tensor.scalar_type()).empty();
    put_global("torch._utils", typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    out_ += '(';
    put_storage(number, typed);
    put(offset);
    put(tensor.sizes());
    put(tensor.strides());
    put(false);
    put_global("collections", "OrderedDict");
    out_ += ")R";
    if (!typed) put_global("torch", dtype_name(tensor.scalar_type()));
    out_ += "tR";
  }

  void put_bytes(std::string_view bytes) override {
    put_global("_codecs", "encode");
    put(std::string_view(latin1_encode(bytes)));
    put("latin1"sv);
    out_ += "\x86R"sv;
  }

  // The persistent id ('storage', class, key, location, elements); an untyped storage's elements are bytes.
  void put_storage(size_t number, bool typed) {
    const StoragePlan::Storage& storage = plan_.storages()[number];
    out_ += '(';
    put("storage"sv);
    if (typed) {
      put_global("torch", storage_class(storage.dtype()));
    } else {
      put_global("torch.storage", "UntypedStorage");
    }
    put(std::string_view(std::to_string(number)));
    put("cpu"sv);
    put(typed ? storage.elements() : static_cast<int64_t>(storage.size()));
    out_ += "tQ";
  }

  const StoragePlan& plan_;
};

}  // namespace

std::string write_pickle(const Value& value, const StoragePlan& plan) { return PickleWriter(plan).write(value); }

}  // namespace lockstep::checkpoint
