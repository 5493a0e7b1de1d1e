#include "lockstep/comm/network/gloo_threads.h"

#include <ATen/ATen.h>
#include <gloo/common/error.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "lockstep/comm/network/gloo_mesh.h"

namespace lockstep::comm {
namespace {

using std::chrono::milliseconds;
using ::testing::ExitedWithCode;

const std::string kAborted = "[/gloo/pair.cc:333] writev [10.0.0.2]:4711: Software caused connection abort\nframe #0";

// Throws on another thread, where nobody catches.
template <typename Exception>
void throw_on_a_thread(const Exception& error) {
  std::thread([error] { throw error; }).detach();
}

// Two ranks' meshes.
std::pair<std::unique_ptr<Mesh>, std::unique_ptr<Mesh>> make_pair_of_meshes() {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const auto make = [&](int rank) {
    return make_gloo_mesh({.rank = rank, .size = 2, .towards = "127.0.0.1", .store = store});
  };
  std::pair<std::unique_ptr<Mesh>, std::unique_ptr<Mesh>> meshes;
  std::thread other([&] { meshes.second = make(1); });
  meshes.first = make(0);
  other.join();
  return meshes;
}

// Waits for a message that does not come. Ends the process with 1 unless the error is that of a lost thread.
void expect_broken(Mesh& mesh) {
  std::byte data{};
  try {
    const std::vector<Message> message = {{1 - mesh.rank(), 1, &data, 1}};
    mesh.exchange({}, message, Deadline(std::chrono::seconds(20)));
  } catch (const MeshError& error) {
    const std::string text = error.what();
    if (error.cause() == MeshError::Cause::kBroken && text.starts_with("writev [10.0.0.2]:4711")) return;
    std::fprintf(stderr, "another error: %s\n", error.what());
  }
  _exit(1);
}

class GlooThreadsDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(GlooThreadsDeathTest, WaitsUnderWayAndLaterOnesEndAndMeshesAreDestroyed) {
  EXPECT_EXIT(
      {
        {
          const auto meshes = make_pair_of_meshes();
          std::thread thrower([] {
            std::this_thread::sleep_for(milliseconds(200));
            throw_on_a_thread(gloo::IoException(kAborted));
          });
          expect_broken(*meshes.first);
          expect_broken(*meshes.first);
          thrower.join();
        }
        std::fputs("destroyed\n", stderr);
        _exit(0);
      },
      ExitedWithCode(0), "^destroyed\n$");
}

TEST_F(GlooThreadsDeathTest, CallsThatDoNotEndEndTheProcessWithOneLine) {
  EXPECT_EXIT(
      {
        const GlooUser user(3, [](const std::string&) { return false; });
        throw_on_a_thread(gloo::IoException(kAborted));
        sleep(60);
      },
      ExitedWithCode(69),
      "^error: rank 3: gloo lost a connection .writev .10.0.0.2.:4711: Software caused connection abort.: [^\n]*\n$");
}

TEST_F(GlooThreadsDeathTest, OtherExceptionsGoToTheHandlerThatWasThereBefore) {
  EXPECT_EXIT(
      {
        std::set_terminate([] { _exit(7); });
        const GlooUser user(0, [](const std::string&) { return true; });
        throw_on_a_thread(std::runtime_error("a user's own"));
        sleep(60);
      },
      ExitedWithCode(7), "");
}

TEST_F(GlooThreadsDeathTest, SoDoThoseOfTheMainThreadAndThoseAfterTheLastUser) {
  EXPECT_EXIT(
      {
        const GlooUser user(0, [](const std::string&) { return true; });
        try {
          throw gloo::IoException(kAborted);
        } catch (...) {
          std::terminate();
        }
      },
      ::testing::KilledBySignal(SIGABRT), "Software caused");
  EXPECT_EXIT(
      {
        {
          const GlooUser user(0, [](const std::string&) { return true; });
        }
        throw_on_a_thread(gloo::IoException(kAborted));
        sleep(60);
      },
      ::testing::KilledBySignal(SIGABRT), "Software caused");
}

}  // namespace
}  // namespace lockstep::comm
