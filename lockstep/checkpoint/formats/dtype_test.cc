#include "lockstep/checkpoint/formats/dtype.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {
namespace {

TEST(Dtype, NamesGoBothWays) {
  for (const auto dtype : {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kChar, at::kByte, at::kShort,
                           at::kInt, at::kLong, at::kBool, at::kUInt16, at::kFloat8_e5m2}) {
    EXPECT_EQ(dtype_by_name(dtype_name(dtype)), dtype);
    if (!storage_class(dtype).empty()) {
      EXPECT_EQ(dtype_of_storage_class(storage_class(dtype)), dtype);
    }
  }
  EXPECT_EQ(dtype_name(at::kFloat), "float32");
  EXPECT_EQ(storage_class(at::kLong), "LongStorage");
}

TEST(Dtype, UnknownNamesAreNothing) {
  EXPECT_FALSE(dtype_by_name("float33"));
  EXPECT_FALSE(dtype_of_storage_class("QInt8Storage"));
  EXPECT_FALSE(dtype_of_storage_class(""));  // types without a class of their own must not be found by its absence
  EXPECT_EQ(dtype_of_storage_class("UntypedStorage"), at::kByte);
}

TEST(Dtype, TypesThatFilesDoNotHoldAreRefused) { EXPECT_THROW(dtype_name(at::kQInt8), BugError); }

}  // namespace
}  // namespace lockstep::checkpoint
