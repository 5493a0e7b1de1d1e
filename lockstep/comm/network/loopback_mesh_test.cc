#include "lockstep/comm/network/loopback_mesh.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "lockstep/comm/network/testing/local_mesh.h"

namespace lockstep::comm {
namespace {

LoopbackMesh mesh_of_one() {
  return LoopbackMesh(std::make_unique<testing::LocalMesh>(std::make_shared<testing::Exchanged>(), 0, 1));
}

TEST(LoopbackMesh, CarriesMessagesToItself) {
  LoopbackMesh mesh = mesh_of_one();
  std::byte sent[3] = {std::byte{1}, std::byte{2}, std::byte{3}}, received[3] = {};
  std::thread receiver([&] {
    mesh.exchange({}, std::vector<Message>{{0, 7, received, 3}}, Deadline(std::chrono::seconds(10)));
  });
  mesh.exchange(std::vector<Message>{{0, 7, sent, 3}}, {}, Deadline(std::chrono::seconds(10)));
  receiver.join();
  EXPECT_EQ(received[2], std::byte{3});
}

TEST(LoopbackMesh, WaitsEndInTimeAndByAbort) {
  LoopbackMesh mesh = mesh_of_one();
  std::byte data{};
  const std::vector<Message> message{{0, 7, &data, 1}};
  EXPECT_THROW(mesh.exchange({}, message, Deadline(std::chrono::milliseconds(50))), MeshError);
  std::thread aborter([&] { mesh.abort(); });
  EXPECT_THROW(mesh.exchange({}, message, Deadline(std::chrono::seconds(10))), MeshError);
  aborter.join();
}

// As the watch, which holds its lock while it aborts the mesh.
TEST(LoopbackMesh, APatienceMayWaitForAnAbort) {
  LoopbackMesh mesh = mesh_of_one();
  std::future<void> abort;
  const Patience patience(Deadline(std::chrono::nanoseconds(0)), [&] {
    if (!abort.valid()) abort = std::async(std::launch::async, [&] { mesh.abort(); });
    EXPECT_EQ(abort.wait_for(std::chrono::seconds(10)), std::future_status::ready) << "the mesh holds its lock";
    return std::chrono::nanoseconds(0);
  });
  std::byte data{};
  EXPECT_THROW(mesh.exchange({}, std::vector<Message>{{0, 7, &data, 1}}, patience), MeshError);
}

}  // namespace
}  // namespace lockstep::comm
