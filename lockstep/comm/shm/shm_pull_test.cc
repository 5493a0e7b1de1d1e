// Movements with threads as ranks: mismatches. With processes: communicator_test.cc.
#include "lockstep/comm/shm/shm_pull.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/comm/shm/testing/threads.h"

namespace lockstep::comm {
namespace {

using ::testing::HasSubstr;
using testing::NodeOfThreads;

TEST(ShmPull, CountsThatDoNotFitAreNamed) {
  NodeOfThreads node(2);
  node.run([](ShmCommunicator& comm) {
    const at::Tensor rows = at::ones({4});
    const std::vector<int64_t> sent = {1, 3};
    try {
      comm.all_to_all(rows, sent, comm.rank() == 0 ? std::vector<int64_t>{1, 1} : std::vector<int64_t>{2, 3});
      if (comm.rank() == 1) ADD_FAILURE() << "no error";
    } catch (const CommError&) {  // the other one gave up
    } catch (const DesyncError& error) {
      EXPECT_EQ(comm.rank(), 1);
      EXPECT_THAT(error.what(), HasSubstr("all_to_all #0: rank 0 sends 3 elements to rank 1, which expects 2"));
      comm.abort(error.what());
    }
  });
}

}  // namespace
}  // namespace lockstep::comm
