#include "lockstep/base/fnv.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

// The values of the authors' own test vectors (fnv64a).
TEST(Fnv, IsFnv1a) {
  EXPECT_EQ(fnv1a(kFnvSeed, ""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a(kFnvSeed, "a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a(kFnvSeed, "foobar"), 0x85944171f73967e8u);
  EXPECT_EQ(fnv1a(kFnvSeed, uint64_t{'a'}), fnv1a(kFnvSeed, "a"));
}

}  // namespace
}  // namespace lockstep
