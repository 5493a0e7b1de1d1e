#include "lockstep/checkpoint/formats/opaque.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/formats/pickle_writer.h"

namespace lockstep::checkpoint {
namespace {

const Value kTree = Dict{{"epoch", 3},
                         {"args", Opaque{"argparse.Namespace"}},
                         {"callbacks", Dict{{5, Opaque{"a.B"}}, {"best", 0.5}}},
                         {"list", List{1, Opaque{"a.B"}, Tuple{{2, Opaque{"a.B"}}}}}};

TEST(Opaque, IsFoundByItsPath) {
  EXPECT_THAT(opaque_paths(kTree), testing::ElementsAre("args", "callbacks/5", "list/1", "list/2/1"));
  EXPECT_THAT(opaque_paths(Opaque{"a.B"}), testing::ElementsAre(""));
  EXPECT_THAT(opaque_paths(Dict{{"a", 1}}), testing::IsEmpty());
}

TEST(Opaque, IsLeftOut) {
  const Value rest = without_opaque(kTree);
  EXPECT_EQ(describe(rest).dump(),
            R"({"epoch":{"value":3},"callbacks/best":{"value":0.5},"list/0":{"value":1},"list/1":{"value":null},)"
            R"("list/2/0":{"value":2},"list/2/1":{"value":null}})");
  EXPECT_NE(rest.get_if<Dict>()->find("list")->items()->at(2).get_if<Tuple>(), nullptr);
  EXPECT_TRUE(without_opaque(Opaque{"a.B"}).is_none());
}

TEST(Opaque, IsNeverWritten) {
  EXPECT_THROW(write_pickle(kTree, StoragePlan(kTree)), BugError);
  EXPECT_NO_THROW(write_pickle(without_opaque(kTree), StoragePlan(without_opaque(kTree))));
}

}  // namespace
}  // namespace lockstep::checkpoint
