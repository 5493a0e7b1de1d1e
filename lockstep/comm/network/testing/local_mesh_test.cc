#include "lockstep/comm/network/testing/local_mesh.h"

#include <gtest/gtest.h>

#include <future>

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

// As the watch, which holds its lock while it aborts the mesh.
TEST(LocalMesh, APatienceMayWaitForAnAbort) {
  LocalMesh mesh(std::make_shared<Exchanged>(), 0, 1);
  std::future<void> abort;
  const Patience patience(Deadline(std::chrono::nanoseconds(0)), [&] {
    if (!abort.valid()) abort = std::async(std::launch::async, [&] { mesh.abort(); });
    EXPECT_EQ(abort.wait_for(std::chrono::seconds(10)), std::future_status::ready) << "the mesh holds its lock";
    return std::chrono::nanoseconds(0);
  });
  std::byte data{};
  EXPECT_THROW(mesh.exchange({}, std::vector<Message>{{0, 7, &data, 1}}, patience), MeshError);
}

TEST(LocalWorld, ThrowsWhatARankThrew) {
  EXPECT_THROW(LocalWorld{}.run([](NetworkCommunicator& comm) {
    if (comm.rank() == 1) throw DataError("nothing there");
  }),
               DataError);
}

}  // namespace
}  // namespace lockstep::comm::testing
