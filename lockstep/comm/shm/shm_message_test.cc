// Messages with threads as ranks: order, mismatches, more than there are slots for. With processes:
// communicator_test.cc.
#include "lockstep/comm/shm/shm_message.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/shm/shm_communicator.h"
#include "lockstep/comm/shm/testing/threads.h"

namespace lockstep::comm {
namespace {

using ::testing::HasSubstr;
using testing::NodeOfThreads;

TEST(ShmMessage, MoreThanThereAreSlotsFor) {
  NodeOfThreads node(2);
  node.run([](ShmCommunicator& comm) {
    constexpr int kCount = 3 * static_cast<int>(ShmSegment::kMessages);
    std::vector<std::shared_ptr<Work>> works;
    std::vector<at::Tensor> tensors;
    for (int i = 0; i < kCount; ++i) {
      tensors.push_back(at::full({10}, comm.rank() == 0 ? i : -1, at::kInt));
      works.push_back(
          comm.start(comm.rank() == 0 ? calls::send(tensors.back(), 1) : calls::receive(tensors.back(), 0)));
    }
    for (auto& work : works) work->wait();
    for (int i = 0; i < kCount; ++i) EXPECT_EQ(tensors[static_cast<size_t>(i)][9].item<int>(), i);
  });
}

TEST(ShmMessage, AHundredTagsAreReceivedInAnyOrder) {
  NodeOfThreads node(2);
  node.run([](ShmCommunicator& comm) {
    constexpr int kCount = 100;
    std::vector<std::shared_ptr<Work>> sent;
    for (int tag = 0; comm.rank() == 0 && tag < kCount; ++tag)
      sent.push_back(comm.isend(at::full({3}, tag, at::kFloat), 1, tag));
    for (int tag = kCount - 1; comm.rank() == 1 && tag >= 0; --tag) {
      const at::Tensor received = at::zeros({3});
      comm.receive(received, 0, tag);
      EXPECT_EQ(received[2].item<int>(), tag);
    }
    for (auto& work : sent) work->wait();
  });
}

// The sender computes meanwhile: it makes no call until the receiver has the message.
TEST(ShmMessage, AMessageIsReceivedWithoutItsSender) {
  std::atomic<bool> received = false;
  NodeOfThreads node(2);
  node.run([&](ShmCommunicator& comm) {
    const at::Tensor tensor = at::full({1000}, 7, at::kFloat);
    if (comm.rank() == 1) {
      const at::Tensor got = at::zeros({1000});
      comm.receive(got, 0);
      EXPECT_TRUE(at::equal(got, tensor));
      received = true;
      return;
    }
    const auto sent = comm.isend(tensor, 1);
    const Stopwatch watch;
    while (!received && watch.seconds() < 20) std::this_thread::yield();
    EXPECT_TRUE(received);
    sent->wait();
  });
}

TEST(ShmMessage, ARankWithoutRoomForMoreMessagesSaysSo) {
  NodeOfThreads node(2, std::chrono::milliseconds(2000));
  node.run([](ShmCommunicator& comm) {
    constexpr int kCount = static_cast<int>(ShmSegment::kMessages) + 1;
    const at::Tensor tensor = at::zeros({1});
    std::vector<std::shared_ptr<Work>> sent;
    try {
      for (int tag = 0; comm.rank() == 0 && tag < kCount; ++tag) sent.push_back(comm.isend(tensor, 1, tag));
      if (comm.rank() == 1) comm.receive(tensor, 0, kCount - 1);
      for (auto& work : sent) work->wait();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("messages under way and room for no more"));
    }
  });
}

TEST(ShmMessage, BothSidesAreToldOfAMismatch) {
  NodeOfThreads node(2);
  node.run([](ShmCommunicator& comm) {
    for (const bool wrong_size : {true, false}) {
      const at::Tensor sent = at::ones({5}), expected = wrong_size ? at::ones({6}) : at::ones({5}, at::kInt);
      const auto work = comm.start(comm.rank() == 0 ? calls::send(sent, 1, 3) : calls::receive(expected, 0, 3));
      try {
        work->wait();
        ADD_FAILURE() << "no error";
      } catch (const DesyncError& error) {
        EXPECT_THAT(error.what(), HasSubstr("rank 0 sent [5] Float to rank 1, which expected ["));
        EXPECT_THAT(error.what(), HasSubstr(wrong_size ? "[6] Float (tag 3)" : "[5] Int (tag 3)"));
      }
      comm.barrier();  // and it goes on working
    }
  });
}

TEST(ShmMessage, AMissingSenderIsNamed) {
  NodeOfThreads node(2, std::chrono::milliseconds(50));
  node.run([](ShmCommunicator& comm) {
    if (comm.rank() == 1) return;
    try {
      comm.receive(at::ones({5}), 1);
      ADD_FAILURE() << "no error";
    } catch (const CommError& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 0: receive from rank 1 (tag 0): waited 0.05 s for rank 1: rank 1"));
    }
  });
}

}  // namespace
}  // namespace lockstep::comm
