#include "lockstep/comm/network/testing/local_mesh.h"

#include <gtest/gtest.h>

#include "lockstep/base/error.h"

namespace lockstep::comm::testing {
namespace {

TEST(LocalMesh, CarriesCutsAndCounts) {
  LocalWorld world;
  world.run_networks([](const Network& network, int rank) {
    std::byte out{static_cast<unsigned char>(rank)}, in{9};
    const int other = 1 - rank;
    network.mesh->exchange(std::vector<Message>{{other, 1, &out, 1}}, std::vector<Message>{{other, 1, &in, 1}},
                           Deadline(std::chrono::seconds(10)));
    EXPECT_EQ(in, static_cast<std::byte>(other));
  });
  EXPECT_EQ(world.exchanged->sent, std::vector<size_t>{1});

  LocalWorld cut;
  cut.exchanged->cut = [](int, int) { return true; };
  EXPECT_THROW(cut.run_networks([](const Network& network, int rank) {
    std::byte data{};
    network.mesh->exchange(std::vector<Message>{{1 - rank, 1, &data, 1}}, std::vector<Message>{{1 - rank, 1, &data, 1}},
                           Deadline(std::chrono::milliseconds(50)));
  }),
               MeshError);
}

TEST(LocalWorld, ThrowsWhatARankThrew) {
  EXPECT_THROW(LocalWorld{}.run([](NetworkCommunicator& comm) {
    if (comm.rank() == 1) throw DataError("nothing there");
  }),
               DataError);
}

}  // namespace
}  // namespace lockstep::comm::testing
