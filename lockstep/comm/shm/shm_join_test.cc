// Reductions through a transport that stands for other nodes, with threads as ranks.
#include "lockstep/comm/shm/shm_join.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "lockstep/comm/shm/testing/threads.h"

namespace lockstep::comm {
namespace {

using testing::NodeOfThreads;

// A join that is done only after several polls.
class SlowWork final : public Work {
 public:
  explicit SlowWork(std::function<void()> act) : act_(std::move(act)) {}
  bool done() override {
    if (looks_ > 0 && --looks_ == 0) act_();
    return looks_ == 0;
  }
  bool wait_for(std::chrono::nanoseconds) override { return done(); }
  void wait() override {
    while (!done()) {
    }
  }
  std::chrono::nanoseconds elapsed() const override { return std::chrono::nanoseconds(0); }

 private:
  std::function<void()> act_;
  int looks_ = 20;
};

// Three ranks, subtrees {0, 1} and {2}, two rails; the other node brings as much again as this one.
class Doubling final : public NodeTransport {
 public:
  const std::vector<std::vector<int>>& subtrees() const override { return subtrees_; }
  int rails() const override { return 2; }
  int world_size() const override { return 6; }
  std::shared_ptr<Work> join(const Call& call, std::vector<at::Tensor> partials) override {
    joined.push_back(call.kind == OpKind::kFold ? call.fold.label : "");
    EXPECT_EQ(partials.size(), 2u);
    return std::make_shared<SlowWork>([partials, op = call.op] {
      partials[0].copy_(op == ReduceOp::kMax ? at::maximum(partials[0], partials[1]) : (partials[0] + partials[1]) * 2);
    });
  }

  std::vector<std::string> joined;

 private:
  std::vector<std::vector<int>> subtrees_ = {{0, 1}, {2}};
};

TEST(ShmJoin, SlicesGoUpAndComeBackToAll) {
  NodeOfThreads node(3);
  node.run_ranks([&](int rank) {
    Doubling transport;
    auto options = node.options(rank);
    options.transport = &transport;
    ShmCommunicator comm(options, node.memory(), node.pool(rank), node.board());
    std::vector<at::Tensor> tensors;
    std::vector<std::shared_ptr<Work>> works;
    for (int i = 0; i < 5; ++i) {
      tensors.push_back(at::full({20000 + i}, rank + i, at::kFloat));
      works.push_back(comm.fold({tensors.back(), at::ones({3})}, {.label = std::to_string(i)}));
    }
    for (auto& work : works) work->wait();
    for (int i = 0; i < 5; ++i) {
      EXPECT_TRUE(tensors[static_cast<size_t>(i)].eq(2.0 * (3 + 3 * i)).all().item<bool>()) << i;
    }
    const std::vector<std::string> in_order = {"0", "1", "2", "3", "4"};
    EXPECT_EQ(transport.joined, rank < 2 ? in_order : std::vector<std::string>());
    const at::Tensor mean = at::full({7}, rank, at::kDouble), most = at::full({7}, rank, at::kInt);
    comm.all_reduce(mean, ReduceOp::kMean);
    comm.all_reduce(most, ReduceOp::kMax);
    EXPECT_EQ(mean[6].item<double>(), 1.0) << "the sum of both nodes over the world's six ranks";
    EXPECT_EQ(most[0].item<int>(), 2);
    comm.fold({at::empty({0})}, {.label = "nothing"})->wait();
    comm.barrier();
  });
}

TEST(ShmJoin, SquareSumsAreOfTheWholeWorldsValue) {
  NodeOfThreads node(3);
  node.run_ranks([&](int rank) {
    Doubling transport;
    auto options = node.options(rank);
    options.transport = &transport;
    ShmCommunicator comm(options, node.memory(), node.pool(rank), node.board());
    const at::Tensor tensor = at::ones({5000}), sums = at::zeros({2}, at::kDouble);
    comm.fold({tensor}, {.label = "sums", .square_sums = sums})->wait();
    EXPECT_EQ(tensor[4999].item<float>(), 6);
    EXPECT_EQ(sums[0].item<double>(), 36.0 * 4096);
    EXPECT_EQ(sums[1].item<double>(), 36.0 * (5000 - 4096));
  });
}

}  // namespace
}  // namespace lockstep::comm
