#include "lockstep/checkpoint/formats/pickle_numpy.h"

#include <ATen/ATen.h>

#include <array>
#include <cstring>
#include <utility>

#include "lockstep/checkpoint/formats/latin1.h"
#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/storage_source.h"
#include "lockstep/checkpoint/formats/tensor_geometry.h"

namespace lockstep::checkpoint {
namespace {

// The bytes of an item that stands for bytes, in either form.
class ItemBytes {
 public:
  ItemBytes(const Heap& heap, const Item& item) : heap_(heap) {
    if (const auto* raw = std::get_if<RawBytes>(&item)) {
      raw_ = *raw;
      length_ = raw->length;
    } else if (const auto* latin1 = std::get_if<Latin1Text>(&item)) {
      text_ = heap.text(*latin1);
      const auto length = latin1_length(text_);
      if (!length) throw Fault{"bytes that hold more than bytes"};
      length_ = *length;
    } else {
      throw Fault{"numpy's numbers as something else than bytes"};
    }
  }
  size_t size() const { return length_; }
  void copy_to(char* memory) const {
    if (raw_) {
      heap_.bytes.copy(raw_->offset, length_, memory);
    } else {
      latin1_decode(text_, memory);
    }
  }

 private:
  const Heap& heap_;
  std::optional<RawBytes> raw_;
  std::string_view text_;  // that is to be decoded
  size_t length_ = 0;
};

std::string dtype_fault(const NumpyDtype& dtype) {
  if (dtype.dtype) return cat("numpy's numbers in big-endian order (", printable(dtype.name, 16), ")");
  return cat("numpy's dtype ", printable(dtype.name, 16), ", which is of no number");
}

bool is_read(const NumpyDtype& dtype) { return dtype.dtype && !dtype.big_endian; }

// The dtype that an argument names. One that no tensor has is a Fault, or unknown where that is ignored.
std::optional<at::ScalarType> number_type(Heap& heap, const CallArguments& arguments, size_t i) {
  const NumpyDtype& dtype = heap.numpy_dtypes[arguments.as<NumpyDtypeRef>(i, "a numpy dtype").index];
  if (is_read(dtype)) return dtype.dtype;
  if (!heap.ignore_unknown) throw Fault{dtype_fault(dtype)};
  return std::nullopt;
}

int64_t product(const std::vector<int64_t>& sizes, int64_t element) {
  int64_t bytes = element;
  for (const int64_t size : sizes) {
    if (size < 0) throw Fault{cat("a numpy array of the negative size ", size)};
    if (__builtin_mul_overflow(bytes, size, &bytes)) throw Fault{"a numpy array that no memory holds"};
  }
  return bytes;
}

TensorGeometry dense(std::vector<int64_t> sizes, bool fortran) {
  TensorGeometry geometry{0, std::move(sizes), {}};
  const size_t dimensions = geometry.sizes.size();
  geometry.strides.resize(dimensions);
  int64_t stride = 1;
  for (size_t i = 0; i < dimensions; ++i) {
    const size_t d = fortran ? i : dimensions - 1 - i;
    geometry.strides[d] = stride;
    stride *= std::max<int64_t>(geometry.sizes[d], 1);
  }
  return geometry;
}

std::optional<c10::Storage> left_in_file(const Heap& heap, const Item& content) {
  const auto* raw = std::get_if<RawBytes>(&content);
  return raw == nullptr ? std::nullopt : heap.bytes.left_in_file(raw->offset, raw->length);
}

at::Tensor array(Heap& heap, at::ScalarType dtype, std::vector<int64_t> sizes, bool fortran, const Item& content) {
  const ItemBytes bytes(heap, content);
  const int64_t needed = product(sizes, static_cast<int64_t>(c10::elementSize(dtype)));
  if (std::cmp_not_equal(needed, bytes.size())) {
    throw Fault{cat("a numpy array of ", needed, " bytes with ", bytes.size(), " bytes of content")};
  }
  // Each array has bytes of its own in an honest file. One that names the same bytes often could fill any memory.
  if (bytes.size() > heap.array_bytes) throw Fault{"numpy arrays that are larger than the file"};
  heap.array_bytes -= bytes.size();
  const TensorGeometry geometry = dense(std::move(sizes), fortran);
  const std::string fault = geometry_fault(geometry, needed / static_cast<int64_t>(c10::elementSize(dtype)));
  if (!fault.empty()) throw Fault{fault};
  if (const auto stored = left_in_file(heap, content)) return tensor_over(*stored, dtype, geometry);
  c10::Storage storage = allocate_storage(needed);
  bytes.copy_to(static_cast<char*>(storage.mutable_data()));
  return tensor_over(storage, dtype, geometry);
}

using ScalarBytes = std::array<char, 8>;

// Of at most 8 bytes; each call looks at few, however long the text is that a file gives.
std::pair<ScalarBytes, size_t> scalar_bytes(const Heap& heap, const Item& item) {
  const auto* latin1 = std::get_if<Latin1Text>(&item);
  ScalarBytes memory{};
  if (latin1 != nullptr && latin1->length > 2 * memory.size()) throw Fault{"a numpy scalar of more than 8 bytes"};
  const ItemBytes bytes(heap, item);
  if (bytes.size() > memory.size()) throw Fault{"a numpy scalar of more than 8 bytes"};
  bytes.copy_to(memory.data());
  return {memory, bytes.size()};
}

template <typename T>
T number_in(const ScalarBytes& bytes) {
  T number;
  std::memcpy(&number, bytes.data(), sizeof number);
  return number;
}

Item scalar(at::ScalarType dtype, const std::pair<ScalarBytes, size_t>& content) {
  const auto& [bytes, size] = content;
  if (size != c10::elementSize(dtype)) throw Fault{cat("a numpy scalar of ", size, " bytes")};
  switch (dtype) {
    case at::kBool:
      return bytes[0] != 0;
    case at::kByte:
      return int64_t{number_in<uint8_t>(bytes)};
    case at::kChar:
      return int64_t{number_in<int8_t>(bytes)};
    case at::kUInt16:
      return int64_t{number_in<uint16_t>(bytes)};
    case at::kShort:
      return int64_t{number_in<int16_t>(bytes)};
    case at::kUInt32:
      return int64_t{number_in<uint32_t>(bytes)};
    case at::kInt:
      return int64_t{number_in<int32_t>(bytes)};
    case at::kLong:
      return number_in<int64_t>(bytes);
    case at::kHalf:
      return double{number_in<c10::Half>(bytes)};
    case at::kFloat:
      return double{number_in<float>(bytes)};
    case at::kDouble:
      return number_in<double>(bytes);
    case at::kUInt64:
      if (number_in<int64_t>(bytes) < 0) throw Fault{"a whole number of more than 63 bits"};
      return number_in<int64_t>(bytes);
    default:
      throw Fault{"a complex number, which is not supported"};
  }
}

Unknown unknown_array(Heap& heap) { return heap.add_unknown("numpy.ndarray"); }

}  // namespace

Item make_numpy_dtype(Heap& heap, const CallArguments& arguments) {
  std::string_view name = arguments.text(0);
  const char order = name.empty() ? '|' : name.front();
  const bool has_order = order == '<' || order == '>' || order == '=' || order == '|';
  if (has_order && !name.empty()) name.remove_prefix(1);
  NumpyDtype dtype = numpy_dtype(name);
  dtype.big_endian = order == '>';
  return heap.add(dtype);
}

void set_numpy_state(Heap& heap, const NumpyDtypeRef& ref, const Item& state) {
  const std::string_view order = CallArguments(heap, state).text(1);
  NumpyDtype& dtype = heap.numpy_dtypes[ref.index];
  if (dtype.dtype && order != "<" && order != "|" && order != ">" && order != "=") {
    throw Fault{cat("numpy's numbers in the byte order ", printable(order, 16))};
  }
  dtype.big_endian = order == ">";
}

Item make_numpy_array(Heap& heap, const CallArguments& arguments) {
  if (const auto* unknown = std::get_if<Unknown>(&arguments.item(0))) return *unknown;  // a subclass
  if (arguments.as<Global>(0, "a class").kind != Global::Kind::kNumpyArray) {
    throw Fault{"numpy's _reconstruct of a class that is no array"};
  }
  return heap.add(NumpyArray{});
}

void set_numpy_state(Heap& heap, const NumpyArrayRef& ref, const Item& state) {
  const CallArguments parts(heap, state);
  if (heap.numpy_arrays[ref.index].tensor.defined()) throw Fault{"a numpy array that is filled twice"};
  const auto dtype = number_type(heap, parts, 2);
  if (!dtype) {
    heap.numpy_arrays[ref.index].unknown = unknown_array(heap);
    return;
  }
  const bool fortran = parts.as<bool>(3, "true or false");
  heap.numpy_arrays[ref.index].tensor = array(heap, *dtype, parts.wholes(1), fortran, parts.item(4));
}

Item make_numpy_array_from_buffer(Heap& heap, const CallArguments& arguments) {
  const auto dtype = number_type(heap, arguments, 1);
  if (!dtype) return unknown_array(heap);
  const std::string_view order = arguments.text(3);
  if (order != "C" && order != "F") throw Fault{cat("a numpy array in the order ", printable(order, 16))};
  return heap.add(array(heap, *dtype, arguments.wholes(2), order == "F", arguments.item(0)));
}

Item make_numpy_scalar(Heap& heap, const CallArguments& arguments) {
  const auto dtype = number_type(heap, arguments, 0);
  if (!dtype) return heap.add_unknown("numpy.generic");
  return scalar(*dtype, scalar_bytes(heap, arguments.item(1)));
}

}  // namespace lockstep::checkpoint
