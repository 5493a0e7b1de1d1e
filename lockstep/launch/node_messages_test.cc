#include "lockstep/launch/node_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::launch {
namespace {

using testing::ElementsAre;

TEST(NodeMessages, ReadBackTheSame) {
  const auto hello = NodeHello::decode(NodeHello{3, 1, "10.0.0.1", {5, 65535}, "a job's name"}.encode());
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->nodes, 3);
  EXPECT_EQ(hello->node, 1);
  EXPECT_EQ(hello->address, "10.0.0.1");
  EXPECT_THAT(hello->ports, ElementsAre(5, 65535));
  EXPECT_EQ(hello->job, "a job's name");
  EXPECT_EQ(NodeHello::decode(NodeHello{1, NodeHandshake::kAsTheyCome, "", {1}, ""}.encode())->address, "");

  const auto answer =
      NodeAnswer::decode(NodeAnswer{.table = {1, 2, 4, {"a:1", "a:2", "b:1", "b:2"}}, .text = {}}.encode());
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->table.first_rank, 2);
  EXPECT_THAT(answer->table.endpoints, ElementsAre("a:1", "a:2", "b:1", "b:2"));
  const auto error = NodeAnswer::decode(NodeAnswer{.table = {}, .error = 69, .text = "no way: at all"}.encode());
  EXPECT_EQ(error->error, 69);
  EXPECT_EQ(error->text, "no way: at all");
}

TEST(NodeMessages, RubbishIsNone) {
  for (const char* line : {"", "\n", "GET / HTTP/1.1\n", "lockstep-node 2 2 1 - 5 j\n", "lockstep-node 1 0 1 - 5 j\n",
                           "lockstep-node 1 2 -2 - 5 j\n", "lockstep-node 1 2 1 - x j\n",
                           "lockstep-node 1 2 1 - 123456 j\n", "lockstep-node 1 2 1 -\n"}) {
    EXPECT_FALSE(NodeHello::decode(line)) << line;
  }
  for (const char* line :
       {"", "ok\n", "ok 0 0 2 a:1\n", "ok 0 2 2 a:1,b:1\n", "ok -1 0 1 a:1\n", "error\n", "error 0 x\n"}) {
    EXPECT_FALSE(NodeAnswer::decode(line)) << line;
  }
}

}  // namespace
}  // namespace lockstep::launch
