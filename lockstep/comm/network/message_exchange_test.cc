#include "lockstep/comm/network/message_exchange.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "lockstep/comm/network/testing/local_mesh.h"

namespace lockstep::comm {
namespace {

TEST(Message, OfOneTagArriveInOrderBothWaysAtOnce) {
  testing::LocalWorld{}.run([](NetworkCommunicator& comm) {
    const int other = 1 - comm.rank();
    std::vector<std::shared_ptr<Work>> works;
    std::vector<at::Tensor> received;
    for (int i = 0; i < 20; ++i) {
      received.push_back(at::zeros({4}, at::kInt));
      works.push_back(comm.start(calls::receive(received.back(), other)));
      works.push_back(comm.start(calls::send(at::full({4}, 100 * comm.rank() + i, at::kInt), other)));
    }
    for (auto& work : works) work->wait();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(received[static_cast<size_t>(i)][3].item<int>(), 100 * other + i);
    const at::Tensor empty = at::empty({0});
    comm.rank() == 0 ? comm.send(empty, 1) : comm.receive(empty, 0);
  });
}

}  // namespace
}  // namespace lockstep::comm
