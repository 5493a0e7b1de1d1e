#include "lockstep/doctor/shared_library.h"

#include <gtest/gtest.h>

namespace lockstep::doctor {
namespace {

TEST(SharedLibrary, TheFirstThatIsThereIsOpened) {
  const SharedLibrary math({"libnot-there.so.1", "libm.so.6"});
  ASSERT_TRUE(math);
  auto* const cosine = math.function<double(double)>("cos");
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0), 1);
  EXPECT_EQ(math.function<void()>("no_such_function"), nullptr);
}

TEST(SharedLibrary, WhatIsNotThereHasNoFunctions) {
  const SharedLibrary none({"libnot-there.so.1"});
  EXPECT_FALSE(none);
  EXPECT_EQ(none.function<void()>("cos"), nullptr);
}

}  // namespace
}  // namespace lockstep::doctor
