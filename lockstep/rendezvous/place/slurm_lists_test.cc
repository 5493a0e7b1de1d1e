#include "lockstep/rendezvous/place/slurm_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::rendezvous {
namespace {

using testing::ElementsAre;
using testing::Optional;

TEST(SlurmLists, NodesAreExpanded) {
  EXPECT_THAT(expand_nodes("alpha"), Optional(ElementsAre("alpha")));
  EXPECT_THAT(expand_nodes("node[01-04,07],other"),
              Optional(ElementsAre("node01", "node02", "node03", "node04", "node07", "other")));
  EXPECT_THAT(expand_nodes("n[8-11]"), Optional(ElementsAre("n8", "n9", "n10", "n11")));
  EXPECT_THAT(expand_nodes("n[098-101]"), Optional(ElementsAre("n098", "n099", "n100", "n101")));
  EXPECT_THAT(expand_nodes("rack[1-2]n[1,3]-ib"),
              Optional(ElementsAre("rack1n1-ib", "rack1n3-ib", "rack2n1-ib", "rack2n3-ib")));
  for (const char* list :
       {"", "n[", "n]", "n[1", "n[2-1]", "n[a-b]", "n[1-2", "n[[1]]", "a,,b", "n[]", "n[1-9999999]"}) {
    EXPECT_EQ(expand_nodes(list), std::nullopt) << list;
  }
}

TEST(SlurmLists, TasksAreExpanded) {
  EXPECT_THAT(expand_tasks("4"), Optional(ElementsAre(4)));
  EXPECT_THAT(expand_tasks("2(x3),1"), Optional(ElementsAre(2, 2, 2, 1)));
  for (const char* list : {"", "2(x", "2(x)", "(x2)", "2,", "x", "0", "2(x0)", "-1"}) {
    EXPECT_EQ(expand_tasks(list), std::nullopt) << list;
  }
}

}  // namespace
}  // namespace lockstep::rendezvous
