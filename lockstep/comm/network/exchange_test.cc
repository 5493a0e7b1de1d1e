#include "lockstep/comm/network/exchange.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lockstep/base/error.h"
#include "lockstep/comm/network/group_numbers.h"

namespace lockstep::comm {
namespace {

// A mesh that records the messages and sends none.
class Notebook final : public Mesh {
 public:
  const char* name() const override { return "notebook"; }
  int rank() const override { return 5; }
  int size() const override { return 9; }
  std::string describe() const override { return "notebook"; }
  void exchange(std::span<const Message> sends, std::span<const Message> receives, const Patience&) override {
    ++rounds;
    sent.insert(sent.end(), sends.begin(), sends.end());
    received.insert(received.end(), receives.begin(), receives.end());
  }
  void check() noexcept override {}
  void abort() noexcept override {}

  int rounds = 0;
  std::vector<Message> sent, received;
};

const Members kMembers{{5, 7, 8}, 0};

uint32_t tag_of(uint64_t salt, uint64_t number, int round, size_t bytes) {
  Notebook mesh;
  Exchange exchange(mesh, kMembers, salt, number, Deadline(std::chrono::seconds(1)));
  const std::byte data{};
  for (int i = 0; i <= round; ++i) exchange({{1, &data, bytes}}, {});
  return mesh.sent.back().tag;
}

TEST(Exchange, NamesMembersByTheirRankInTheMeshAndLeavesOutWhatIsEmpty) {
  Notebook mesh;
  Exchange exchange(mesh, kMembers, 1, 1, Deadline(std::chrono::seconds(1)));
  std::byte data[4] = {};
  exchange({{1, data, 4}, {2, data, 0}}, {{2, data, 4}});
  ASSERT_EQ(mesh.sent.size(), 1u);
  EXPECT_EQ(mesh.sent[0].peer, 7);
  EXPECT_EQ(mesh.received.at(0).peer, 8);
  exchange({{1, data, 0}}, {});
  EXPECT_EQ(mesh.rounds, 1);
}

// Of one message.
std::vector<uint32_t> tags_of_message(int group, int user_tag, uint64_t number) {
  Notebook mesh;
  const Members members{{5, 7, 8}, 0, group};
  Exchange exchange(mesh, members, 99, number, Deadline(std::chrono::seconds(1)), user_tag);
  const std::byte data{};
  for (int round = 0; round < 3; ++round) exchange({{1, &data, 4}}, {});
  std::vector<uint32_t> tags;
  for (const Message& message : mesh.sent) tags.push_back(message.tag);
  return tags;
}

TEST(Exchange, GroupsNeverHaveATagInCommon) {
  std::map<uint32_t, int> group_of;
  for (const int group : {0, 1, 2, 77, GroupNumbers::kMost - 1}) {
    Notebook mesh;
    const Members members{{5, 7, 8}, 0, group};
    const std::byte data{};
    for (uint64_t salt = 1; salt <= 20000; ++salt) {
      Exchange exchange(mesh, members, salt * 0x123456789abcdef1, salt, Deadline(std::chrono::seconds(1)));
      exchange({{1, &data, 8}}, {});
    }
    for (int tag = 0; tag < 5000; ++tag) {
      for (const uint32_t each : tags_of_message(group, tag, 3)) mesh.sent.push_back({1, each, nullptr, 4, group});
    }
    for (const Message& message : mesh.sent) {
      EXPECT_EQ(message.group, group);
      EXPECT_LT(message.tag, 0x7ffffffeu) << "those above are the mesh's own";
      ASSERT_EQ(group_of.emplace(message.tag, group).first->second, group);
    }
  }
}

TEST(Exchange, MessagesThatMayBeUnderWayAtOnceHaveTagsOfTheirOwn) {
  std::set<uint32_t> tags;
  size_t count = 0;
  for (int user = 0; user < 32768; user += 13) {
    for (uint64_t number = 100; number < 100 + Exchange::kMostMessages; ++number) {
      for (const uint32_t tag : tags_of_message(7, user, number)) tags.insert(tag), ++count;
    }
  }
  for (const int user : {-1, 1 << 20, (1 << 20) + 1, (1 << 24) + 77}) {
    for (const uint32_t tag : tags_of_message(7, user, 1)) tags.insert(tag), ++count;
  }
  EXPECT_EQ(tags.size(), count);
}

TEST(Exchange, TagsTellApartWhatMustNotMeet) {
  std::set<uint32_t> tags;
  for (const uint64_t salt : {1u, 2u}) {
    for (const uint64_t number : {1u, 2u, 33u}) {
      for (const int round : {0, 1, 5}) {
        for (const size_t bytes : {4u, 8u}) tags.insert(tag_of(salt, number, round, bytes));
      }
    }
  }
  EXPECT_EQ(tags.size(), 2u * 3 * 3 * 2);
  EXPECT_LT(*tags.rbegin(), uint32_t{1} << 31);
  EXPECT_EQ(tag_of(3, 4, 1, 16), tag_of(3, 4, 1, 16));
}

}  // namespace
}  // namespace lockstep::comm
