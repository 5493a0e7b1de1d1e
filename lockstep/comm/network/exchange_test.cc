#include "lockstep/comm/network/exchange.h"

#include <gtest/gtest.h>

#include <set>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

// A mesh that records the messages and sends none.
class Notebook final : public Mesh {
 public:
  const char* name() const override { return "notebook"; }
  int rank() const override { return 5; }
  int size() const override { return 9; }
  std::string describe() const override { return "notebook"; }
  void exchange(std::span<const Message> sends, std::span<const Message> receives, const Deadline&) override {
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
