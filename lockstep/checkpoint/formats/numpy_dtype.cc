#include "lockstep/checkpoint/formats/numpy_dtype.h"

namespace lockstep::checkpoint {
namespace {

struct Row {
  at::ScalarType dtype;
  std::string_view name;
};

constexpr Row kRows[] = {
    {at::kBool, "b1"},         {at::kByte, "u1"},           {at::kUInt16, "u2"}, {at::kUInt32, "u4"},
    {at::kUInt64, "u8"},       {at::kChar, "i1"},           {at::kShort, "i2"},  {at::kInt, "i4"},
    {at::kLong, "i8"},         {at::kHalf, "f2"},           {at::kFloat, "f4"},  {at::kDouble, "f8"},
    {at::kComplexFloat, "c8"}, {at::kComplexDouble, "c16"},
};

}  // namespace

NumpyDtype numpy_dtype(std::string_view name) {
  NumpyDtype found{.name = name, .dtype = std::nullopt};
  for (const Row& row : kRows) {
    if (row.name == name) found.dtype = row.dtype;
  }
  return found;
}

std::string_view numpy_dtype_name(at::ScalarType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return row.name;
  }
  return "";
}

}  // namespace lockstep::checkpoint
