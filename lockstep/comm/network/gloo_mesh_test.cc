#include "lockstep/comm/network/gloo_mesh.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;

// Two ranks as threads, with a mesh each.
void run_pair(const std::function<void(Mesh&)>& program) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::thread> ranks;
  for (const int rank : {0, 1}) {
    ranks.emplace_back([&, rank] {
      const auto mesh = make_gloo_mesh({.rank = rank, .size = 2, .towards = "127.0.0.1", .store = store});
      program(*mesh);
    });
  }
  for (auto& rank : ranks) rank.join();
}

TEST(GlooMesh, ExchangesMessagesOfManySizesFromSeveralThreads) {
  run_pair([](Mesh& mesh) {
    EXPECT_EQ(mesh.size(), 2);
    EXPECT_STREQ(mesh.name(), "gloo");
    EXPECT_THAT(mesh.describe(), ::testing::HasSubstr("127.0.0.1"));
    const int other = 1 - mesh.rank();
    std::vector<std::thread> threads;
    for (uint32_t thread = 0; thread < 3; ++thread) {
      threads.emplace_back([&, thread] {
        for (const size_t bytes : {size_t{1}, size_t{1000}, size_t{3} << 20}) {
          std::vector<std::byte> out(bytes, std::byte(10 * mesh.rank() + static_cast<int>(thread))), in(bytes);
          mesh.exchange(std::vector<Message>{{other, thread, out.data(), bytes}},
                        std::vector<Message>{{other, thread, in.data(), bytes}}, Deadline(std::chrono::seconds(20)));
          EXPECT_EQ(in.back(), std::byte(10 * other + static_cast<int>(thread)));
        }
      });
    }
    for (auto& thread : threads) thread.join();
  });
}

TEST(GlooMesh, AMessageThatDoesNotComeTimesOut) {
  run_pair([](Mesh& mesh) {
    std::byte data{};
    const std::vector<Message> message{{1 - mesh.rank(), 1, &data, 1}};
    try {
      mesh.exchange({}, message, Deadline(milliseconds(200)));
      ADD_FAILURE() << "no error";
    } catch (const MeshError& error) {
      EXPECT_EQ(error.cause(), MeshError::Cause::kTimeout);
      EXPECT_EQ(error.peers(), std::vector<int>{1 - mesh.rank()});
    }
    EXPECT_THROW(mesh.exchange({}, message, Deadline(std::chrono::seconds(20))), MeshError);
  });
}

TEST(GlooMesh, AbortEndsAWait) {
  run_pair([](Mesh& mesh) {
    std::thread aborter([&] {
      std::this_thread::sleep_for(milliseconds(200));
      mesh.abort();
    });
    std::byte data{};
    EXPECT_THROW(
        mesh.exchange({}, std::vector<Message>{{1 - mesh.rank(), 1, &data, 1}}, Deadline(std::chrono::seconds(20))),
        MeshError);
    aborter.join();
  });
}

TEST(GlooMesh, APeerThatEndsIsABrokenConnection) {
  run_pair([](Mesh& mesh) {
    if (mesh.rank() == 1) return;
    std::byte data{};
    try {
      mesh.exchange({}, std::vector<Message>{{1, 1, &data, 1}}, Deadline(std::chrono::seconds(20)));
      ADD_FAILURE() << "no error";
    } catch (const MeshError& error) {
      EXPECT_EQ(error.cause(), MeshError::Cause::kBroken);
      EXPECT_EQ(error.peers(), std::vector<int>{1});
    }
  });
}

TEST(GlooMesh, AnUnknownInterfaceIsAConfigError) {
  EXPECT_THROW(
      make_gloo_mesh({.rank = 0, .size = 1, .interfaces = "ib7", .store = c10::make_intrusive<c10d::HashStore>()}),
      ConfigError);
}

TEST(GlooMesh, ARankThatDoesNotComeIsACommError) {
  EXPECT_THROW(make_gloo_mesh({.rank = 0,
                               .size = 2,
                               .towards = "127.0.0.1",
                               .timeout = milliseconds(300),
                               .store = c10::make_intrusive<c10d::HashStore>()}),
               CommError);
}

}  // namespace
}  // namespace lockstep::comm
