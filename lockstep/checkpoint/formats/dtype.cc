#include "lockstep/checkpoint/formats/dtype.h"

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {
namespace {

struct Row {
  at::ScalarType dtype;
  std::string_view name;
  std::string_view storage;
};

constexpr Row kRows[] = {
    {at::kHalf, "float16", "HalfStorage"},
    {at::kBFloat16, "bfloat16", "BFloat16Storage"},
    {at::kFloat, "float32", "FloatStorage"},
    {at::kDouble, "float64", "DoubleStorage"},
    {at::kChar, "int8", "CharStorage"},
    {at::kByte, "uint8", "ByteStorage"},
    {at::kShort, "int16", "ShortStorage"},
    {at::kInt, "int32", "IntStorage"},
    {at::kLong, "int64", "LongStorage"},
    {at::kBool, "bool", "BoolStorage"},
    {at::kComplexFloat, "complex64", "ComplexFloatStorage"},
    {at::kComplexDouble, "complex128", "ComplexDoubleStorage"},
    {at::kComplexHalf, "complex32", ""},
    {at::kUInt16, "uint16", ""},
    {at::kUInt32, "uint32", ""},
    {at::kUInt64, "uint64", ""},
    {at::kFloat8_e4m3fn, "float8_e4m3fn", ""},
    {at::kFloat8_e5m2, "float8_e5m2", ""},
    {at::kFloat8_e4m3fnuz, "float8_e4m3fnuz", ""},
    {at::kFloat8_e5m2fnuz, "float8_e5m2fnuz", ""},
    {at::kFloat8_e8m0fnu, "float8_e8m0fnu", ""},
    {at::kFloat4_e2m1fn_x2, "float4_e2m1fn_x2", ""},
    {at::kBits8, "bits8", ""},
    {at::kBits16, "bits16", ""},
    {at::kBits1x8, "bits1x8", ""},
    {at::kBits2x4, "bits2x4", ""},
    {at::kBits4x2, "bits4x2", ""},
};

const Row& row_of(at::ScalarType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return row;
  }
  throw BugError("tensors of type ", c10::toString(dtype), " can't be stored in a checkpoint");
}

}  // namespace

std::string_view dtype_name(at::ScalarType dtype) { return row_of(dtype).name; }

std::optional<at::ScalarType> dtype_by_name(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::string_view storage_class(at::ScalarType dtype) { return row_of(dtype).storage; }

std::optional<at::ScalarType> dtype_of_storage_class(std::string_view name) {
  if (name == "UntypedStorage") return at::kByte;
  for (const Row& row : kRows) {
    if (!row.storage.empty() && row.storage == name) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace lockstep::checkpoint
