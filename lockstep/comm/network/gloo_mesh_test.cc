#include "lockstep/comm/network/gloo_mesh.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "lockstep/base/error.h"
#include "lockstep/base/sigpipe.h"

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;

// Two ranks as threads, with a mesh each.
void run_pair(const std::function<void(Mesh&)>& program) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::thread> ranks;
  const SigpipeBlocked blocked;  // for the ranks, and for the threads that they start
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
    if (mesh.rank() == 0) {  // whose end breaks the other's connection
      try {
        mesh.exchange({}, message, Deadline(milliseconds(200)));
        ADD_FAILURE() << "no error";
      } catch (const MeshError& error) {
        EXPECT_EQ(error.cause(), MeshError::Cause::kTimeout);
        EXPECT_EQ(error.peers(), std::vector<int>{1});
      }
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

// Shuts down this process's TCP connections that have both ends here.
void cut_own_connections() {
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0 && address.sin_family == AF_INET) {
      shutdown(descriptor, SHUT_RDWR);
    }
  }
}

TEST(GlooMesh, AConnectionThatBreaksWithinAMessageIsSeenByCheck) {
  std::atomic<int> under_way = 0;
  run_pair([&](Mesh& mesh) {
    std::vector<std::byte> data(size_t{1} << 30);  // more than a connection holds
    const std::vector<Message> message{{1 - mesh.rank(), 1, data.data(), data.size()}};
    std::atomic<bool> done = false;
    std::thread checks([&] {
      while (under_way < 2) std::this_thread::yield();
      std::this_thread::sleep_for(milliseconds(30));
      if (mesh.rank() == 0) cut_own_connections();
      for (; !done; std::this_thread::sleep_for(milliseconds(100))) mesh.check();
    });
    ++under_way;
    try {
      const std::vector<Message> none;
      mesh.exchange(mesh.rank() == 0 ? message : none, mesh.rank() == 0 ? none : message,
                    Deadline(std::chrono::seconds(20)));
      ADD_FAILURE() << "no error";
    } catch (const MeshError& error) {
      EXPECT_EQ(error.cause(), MeshError::Cause::kBroken) << error.what();
      EXPECT_EQ(error.peers(), std::vector<int>{1 - mesh.rank()});
    }
    done = true;
    checks.join();
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

TEST(GlooMesh, AnExchangeWaitsAsLongAsItsPatienceLasts) {
  std::atomic<bool> enough = false;
  run_pair([&](Mesh& mesh) {
    std::byte data{7};
    const std::vector<Message> first{{1 - mesh.rank(), 1, &data, 1}}, second{{1 - mesh.rank(), 2, &data, 1}};
    if (mesh.rank() == 1) {
      std::this_thread::sleep_for(milliseconds(500));
      mesh.exchange(first, {}, Deadline(std::chrono::seconds(20)));
      std::this_thread::sleep_for(milliseconds(500));
      enough = true;
      return;
    }
    const auto patience = [&] {
      return Patience(Deadline(milliseconds(50)), [&] { return milliseconds(enough ? -1 : 20); });
    };
    data = {};
    mesh.exchange({}, first, patience());
    EXPECT_EQ(data, std::byte{7});
    try {
      mesh.exchange({}, second, patience());
      ADD_FAILURE() << "no error";
    } catch (const MeshError& error) {
      EXPECT_NE(error.cause(), MeshError::Cause::kAborted);
    }
  });
}

}  // namespace
}  // namespace lockstep::comm
