// Run by mpirun: every rank runs every test. It fails where fewer ranks run than were meant.
#include "lockstep/comm/plugins/mpi_plugin.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <gtest/gtest.h>
#include <mpi.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"

namespace lockstep::comm {
namespace {

using Bytes = std::vector<std::byte>;
constexpr std::chrono::seconds kLong{60};

class MpiEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    int threads = 0, size = 0;
    const bool serialised = env("LOCKSTEP_TEST_SERIALISED").has_value();
    MPI_Init_thread(nullptr, nullptr, serialised ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE, &threads);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ASSERT_EQ(size, env_int("LOCKSTEP_TEST_RANKS", 1, 1024).value_or(size));
  }
  void TearDown() override { MPI_Finalize(); }
};

[[maybe_unused]] const auto* const registered = ::testing::AddGlobalTestEnvironment(new MpiEnvironment);

// A mesh of its own for each test, among MPI's ranks in the opposite order.
class MpiMeshTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    rank_ = size_ - 1 - rank_;
    mesh_.reset(lockstep_make_mpi_mesh({.rank = rank_, .size = size_}));
  }
  // Nobody leaves before all are through; and every test begins in step.
  void TearDown() override { MPI_Barrier(MPI_COMM_WORLD); }

  // Every byte tells who sent it to whom, in which message.
  static Bytes pattern(int from, int to, uint32_t tag, size_t bytes) {
    Bytes data(bytes);
    for (size_t k = 0; k < bytes; ++k)
      data[k] = static_cast<std::byte>(k * 7 + k / 4096 + static_cast<size_t>(from * 31 + to * 17) + tag);
    return data;
  }

  void all_to_all(uint32_t tag, size_t bytes) {
    std::vector<Bytes> out, in;
    std::vector<Message> sends, receives;
    for (int peer = 0; peer < size_; ++peer) {
      out.push_back(pattern(rank_, peer, tag, bytes));
      in.emplace_back(bytes);
    }
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      sends.push_back({peer, tag, out[static_cast<size_t>(peer)].data(), bytes});
      receives.push_back({peer, tag, in[static_cast<size_t>(peer)].data(), bytes});
    }
    mesh_->exchange(sends, receives, Deadline(kLong));
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      EXPECT_TRUE(in[static_cast<size_t>(peer)] == pattern(peer, rank_, tag, bytes))
          << "from rank " << peer << ", " << bytes;
    }
  }

  int rank_ = 0, size_ = 0;
  std::unique_ptr<Mesh> mesh_;
};

TEST_F(MpiMeshTest, KnowsItsPlace) {
  EXPECT_EQ(mesh_->rank(), rank_);
  EXPECT_EQ(mesh_->size(), size_);
  EXPECT_STREQ(mesh_->name(), "mpi");
  EXPECT_TRUE(mesh_->describe().starts_with("mpi: ")) << mesh_->describe();
}

TEST_F(MpiMeshTest, RefusesAWorldThatIsNotMpis) {
  try {
    lockstep_make_mpi_mesh({.rank = 0, .size = size_ + 1});
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("mpirun -n"), std::string::npos) << error.what();
  }
}

TEST_F(MpiMeshTest, NothingToExchange) { mesh_->exchange({}, {}, Deadline(kLong)); }

TEST_F(MpiMeshTest, Ring) {
  const int right = (rank_ + 1) % size_, left = (rank_ + size_ - 1) % size_;
  for (const size_t bytes : {1u, 8u, 4095u, 70'000u}) {
    Bytes out = pattern(rank_, right, 5, bytes), in(bytes);
    const Message send{right, 5, out.data(), bytes}, receive{left, 5, in.data(), bytes};
    mesh_->exchange({&send, 1}, {&receive, 1}, Deadline(kLong));
    EXPECT_TRUE(in == pattern(left, rank_, 5, bytes));
  }
}

TEST_F(MpiMeshTest, AllToAllOfManySizes) {
  for (const size_t bytes : {1ul, 3ul, 64ul, 1000ul, 4096ul, 65'537ul, 1ul << 20, (1ul << 24) + 1, 1ul << 26}) {
    all_to_all(0x7fffffff - static_cast<uint32_t>(bytes % 1000), bytes);
  }
}

TEST_F(MpiMeshTest, ManyExchangesFromTwoThreads) {
  const auto run = [this](uint32_t first) {
    for (uint32_t k = 0; k < 300; ++k) all_to_all(first + k % 8, 1 + k * 131);
  };
  std::thread other(run, 1000);
  run(2000);
  other.join();
}

// Two groups of all ranks, one of them in the opposite order, whose messages have equal tags.
TEST_F(MpiMeshTest, GroupsAreKeptApartByMoreThanTags) {
  std::vector<int> all, reversed;
  for (int k = 0; k < size_; ++k) all.push_back(k), reversed.push_back(size_ - 1 - k);
  for (int again = 0; again < 2; ++again) {
    mesh_->open_group(3, all);
    mesh_->open_group(4, reversed);
    const int right = (rank_ + 1) % size_, left = (rank_ + size_ - 1) % size_;
    Bytes out[2], in[2] = {Bytes(100), Bytes(100)};
    for (const int k : {0, 1}) out[k] = Bytes(100, static_cast<std::byte>(10 * rank_ + k));
    const auto move = [&](int k) {
      const Message send{right, 5, out[k].data(), 100, 3 + k}, receive{left, 5, in[k].data(), 100, 3 + k};
      return std::pair(send, receive);
    };
    const auto [send, receive] = move(0);
    const auto [other_send, other_receive] = move(1);
    const Message sends[] = {send, other_send}, receives[] = {other_receive, receive};
    mesh_->exchange(sends, receives, Deadline(kLong));
    for (const int k : {0, 1}) EXPECT_TRUE(in[k] == Bytes(100, static_cast<std::byte>(10 * left + k))) << k;
  }
}

TEST_F(MpiMeshTest, ALateMessageTimesOutAndNamesThePeer) {
  constexpr std::chrono::milliseconds kShort{300};
  if (rank_ != 0) return;
  Bytes in(1000);
  const Message receive{size_ - 1, 7, in.data(), in.size()};
  const Stopwatch watch;
  try {
    mesh_->exchange({}, {&receive, 1}, Deadline(kShort));
    FAIL() << "no error";
  } catch (const MeshError& error) {
    EXPECT_EQ(error.cause(), MeshError::Cause::kTimeout);
    EXPECT_EQ(error.peers(), std::vector<int>{size_ - 1});
  }
  EXPECT_GE(watch.seconds(), 0.29);
  EXPECT_LT(watch.seconds(), 5);
  EXPECT_THROW(mesh_->exchange({}, {&receive, 1}, Deadline(kLong)), MeshError) << "none works after one";
}

TEST_F(MpiMeshTest, AbortEndsAWaitOnAnotherThread) {
  std::atomic<bool> aborted = false;
  std::thread waiter([&] {
    Bytes in(10);
    const Message receive{(rank_ + 1) % size_, 9, in.data(), in.size()};
    try {
      mesh_->exchange({}, {&receive, 1}, Deadline(kLong));
    } catch (const MeshError& error) {
      aborted = error.cause() == MeshError::Cause::kAborted;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  mesh_->abort();
  waiter.join();
  EXPECT_TRUE(aborted);
}

TEST_F(MpiMeshTest, AMessageOfAnotherLengthIsAnError) {
  Bytes data(100);
  const Message message{rank_ == 0 ? size_ - 1 : 0, 11, data.data(), rank_ == 0 ? size_t{100} : size_t{50}};
  if (rank_ == size_ - 1) mesh_->exchange({&message, 1}, {}, Deadline(kLong));
  if (rank_ == 0) EXPECT_THROW(mesh_->exchange({}, {&message, 1}, Deadline(kLong)), MeshError);
}

}  // namespace
}  // namespace lockstep::comm
