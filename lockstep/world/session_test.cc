#include "lockstep/world/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/base/free_ports.h"
#include "lockstep/world/world.h"
#include "support/ranks.h"

namespace lockstep {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing_support::RankContext;
using testing_support::Ranks;

// Ranks as threads that only meet: what each threw, or where it found itself.
std::vector<std::string> meet_all(const std::vector<rendezvous::Place>& places, milliseconds timeout) {
  const std::string address = cat("tcp://127.0.0.1:", free_port());
  std::vector<std::string> texts(places.size());
  std::vector<std::unique_ptr<Session>> sessions(places.size());
  std::vector<std::thread> ranks;
  for (size_t i = 0; i < places.size(); ++i) {
    ranks.emplace_back([&, i] {
      rendezvous::Place place = places[i];
      place.rendezvous = address;
      try {
        sessions[i] = open_session(place, Deadline(timeout));
        const comm::RankPlace& own = sessions[i]->table.at(static_cast<size_t>(place.rank));
        texts[i] = cat("node ", own.node, " of ", comm::node_count(sessions[i]->table), ", local rank ", own.local_rank,
                       " of ", sessions[i]->node_ranks().size());
      } catch (const Error& error) {
        texts[i] = cat(error.exit_code(), ' ', error.what());
      }
    });
  }
  for (auto& rank : ranks) rank.join();
  return texts;
}

rendezvous::Place place(int rank, int size, int local_rank, int node) {
  return {.rank = rank, .size = size, .local_rank = local_rank, .local_size = 1, .node = node};
}

TEST(Session, TellsRanksApartByNode) {
  // Dealt out by turns, as mpirun --map-by node does.
  EXPECT_EQ(meet_all({place(0, 3, 0, 5), place(1, 3, 0, 2), place(2, 3, 1, 5)}, milliseconds(10'000)),
            (std::vector<std::string>{"node 0 of 2, local rank 0 of 2", "node 1 of 2, local rank 0 of 1",
                                      "node 0 of 2, local rank 1 of 2"}));
}

TEST(Session, WorldSizesThatDisagreeAreAnErrorOnAllRanks) {
  for (const auto& text : meet_all({place(0, 2, 0, 0), place(1, 3, 0, 1)}, milliseconds(10'000))) {
    EXPECT_THAT(text, HasSubstr("was started in a world of 3 ranks, rank 0 in a world of 2"));
    EXPECT_THAT(text, ::testing::StartsWith("2 rank 1"));
  }
}

TEST(Session, ARankThatRank0DoesNotKnowOfIsToldSo) {
  const auto texts = meet_all({place(0, 1, 0, 0), place(5, 8, 0, 1)}, milliseconds(2000));
  EXPECT_THAT(texts[1], HasSubstr("2 rank 5"));
  EXPECT_THAT(texts[1], HasSubstr("in a world of 8 ranks, rank 0 in a world of 1"));
}

TEST(Session, TwoProcessesOfOneRankAreAnError) {
  const auto texts = meet_all({place(0, 2, 0, 0), place(1, 2, 0, 1), place(1, 2, 0, 1)}, milliseconds(5000));
  EXPECT_EQ(std::count_if(texts.begin(), texts.end(),
                          [](const auto& text) { return text.find("two processes say") != std::string::npos; }),
            1);
}

TEST(Session, LocalRanksThatClashAreNamed) {
  for (const auto& text : meet_all({place(0, 2, 0, 0), place(1, 2, 0, 0)}, milliseconds(10'000))) {
    EXPECT_THAT(text, HasSubstr("are not 0, 1, … each once; look at LOCAL_RANK there"));
  }
}

TEST(Session, WhoIsMissingIsNamedOnAllRanks) {
  for (const auto& text : meet_all({place(0, 3, 0, 0), place(2, 3, 0, 2)}, milliseconds(700))) {
    EXPECT_THAT(text, HasSubstr("for rank 1 of 3"));
  }
}

// Over the launcher's memory, by the options alone.
RANK_PROGRAM(over) {
  const auto set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 1); };
  const size_t space = context.argument.find(' ');
  set("RANK", std::to_string(context.rank));
  set("WORLD_SIZE", std::to_string(context.size));
  set("LOCAL_RANK", std::to_string(context.rank));
  set("LOCAL_WORLD_SIZE", std::to_string(context.size));
  set("MASTER_ADDR", "127.0.0.1");
  set("MASTER_PORT", context.argument.substr(space + 1));
  set("LOCKSTEP_DEBUG", "INFO");
  unsetenv("LOCKSTEP_NODE_MEMORY");
  const auto world = init({.backend = context.argument.substr(0, space)});
  world->communicator().barrier();
}

RANK_PROGRAM(names_interfaces) {
  unsetenv("GLOO_SOCKET_IFNAME");
  EXPECT_EQ(named_interfaces(""), "");
  EXPECT_EQ(named_interfaces("lo"), "lo");
  EXPECT_THROW(named_interfaces("lo,ib7"), ConfigError);
  setenv("GLOO_SOCKET_IFNAME", "ib7", 1);
  EXPECT_EQ(named_interfaces("lo"), "lo");
  EXPECT_THROW(named_interfaces(""), ConfigError);
}

TEST(NamedInterfaces, AreLookedUpAtOnce) { testing_support::expect_ranks_pass("names_interfaces", 1); }

TEST(World, SaysItsTransportIfAskedTo) {
  const auto results = Ranks("over", 2, cat("gloo ", free_port())).wait();
  for (const auto& result : results) {
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.output, HasSubstr("comm: gloo over lo (127.0.0.1), 2 ranks"));
  }
  for (const auto& result : Ranks("over", 2, cat("shm ", free_port())).wait()) {
    EXPECT_THAT(result.output, HasSubstr("comm: shm, 2 ranks"));
  }
}

}  // namespace
}  // namespace lockstep
