#include "lockstep/world/backends.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lockstep/base/error.h"
#include "lockstep/world/options/backend_options.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

TEST(Backends, AreMadeByName) {
  const NodeMemory memory = NodeMemory::create(1);
  const Mapping board(memory.board.get());
  comm::Pool pool(Descriptor(dup(memory.pools[0].get())));
  const rendezvous::Place place;
  const BackendParts parts{place, memory, pool, Board::attach(board.data()), nullptr};
  EXPECT_TRUE(make_communicator(parts, {.backend = "single"})->same_bits());
  EXPECT_THROW(make_communicator(parts, {.backend = "tin cans"}), ConfigError);
}

TEST(ChooseBackend, TakesWhatCanServe) {
  const rendezvous::Place one;
  const rendezvous::Place four{.size = 4, .local_size = 4, .launcher = "none"};
  const rendezvous::Place two_nodes{.size = 4, .local_size = 2, .launcher = "none"};
  const rendezvous::Place crowd{.size = 65, .local_size = 65, .launcher = "none"};
  EXPECT_EQ(choose_backend("auto", one).name, "single");
  EXPECT_EQ(choose_backend("gloo", one).name, "single");
  EXPECT_EQ(choose_backend("auto", four).name, "shm");
  EXPECT_EQ(choose_backend("gloo", four).name, "gloo");
  EXPECT_EQ(choose_backend("auto", two_nodes).name, "hierarchical");
  EXPECT_EQ(choose_backend("mpi", two_nodes).name, "mpi");
  const auto refusal = [](const char* backend, const rendezvous::Place& where) -> std::string {
    try {
      return std::string(choose_backend(backend, where).name);
    } catch (const ConfigError& error) {
      return error.what();
    }
  };
  EXPECT_THAT(refusal("auto", crowd), HasSubstr("65 ranks on one node: at most 64"));
  EXPECT_THAT(refusal("shm", two_nodes), HasSubstr("use hierarchical or gloo"));
  EXPECT_THAT(refusal("single", four), HasSubstr("not of 4 ranks"));
  EXPECT_THAT(refusal("shn", four), HasSubstr("did you mean shm?"));
}

// What the command line lists.
TEST(Backends, TheListOfNamesIsTheRegistrys) {
  std::set<std::string_view> registered;
  for (const Backend& backend : backends()) registered.insert(backend.name);
  EXPECT_EQ(std::set<std::string_view>(kBackendNames.begin(), kBackendNames.end()), registered);
}

}  // namespace
}  // namespace lockstep
