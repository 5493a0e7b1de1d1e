#include "lockstep/parallel/server/parameter_server.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <torch/nn/modules/linear.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <thread>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/parallel/server/served_parameters.h"
#include "lockstep/parallel/server/testing/servers.h"
#include "lockstep/rendezvous/place/address.h"
#include "lockstep/rendezvous/place/tcp_sockets.h"

namespace lockstep::parallel {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing_support::refusal;

TEST(ParameterServer, SynchronousStepsAreThoseOfOneProcess) {
  for (const int servers : {1, 2, 3}) {
    for (const int workers : {1, 2, 4}) {
      Servers all(servers, {.workers = workers, .optimizer_options = {{"lr", 0.5}, {"momentum", 0.9}}});
      const auto expected = alone(workers, 40);
      with_workers(workers, [&](int worker) {
        torch::nn::Linear net(4, 3);
        ServedParameters served(net->parameters(), all.addresses(), {.worker = worker});
        for (int64_t step = 0; step < 40; ++step) {
          EXPECT_EQ(served.pull(), step);
          loss_of(net, batch_of(step, worker)).backward();
          served.push(2);
        }
        served.pull();
        expect_close(net->parameters(), expected);
      });
      for (const ServerReport& report : all.reports()) {
        EXPECT_EQ(report.updates, 40);
        EXPECT_EQ(report.workers, workers);
        EXPECT_EQ(report.lost, 0);
        EXPECT_EQ(report.most_staleness, 0);
      }
    }
  }
}

TEST(ParameterServer, AsynchronousWorkersStayWithinTheStaleness) {
  for (const int64_t staleness : {0, 2}) {
    Servers all(2, {.workers = 3, .synchronous = false, .staleness = staleness, .optimizer_options = {{"lr", 0.1}}});
    std::atomic<int64_t> slow = 0, ahead = 0;
    with_workers(3, [&](int worker) {
      auto net = net_of();
      ServedParameters served(net->parameters(), all.addresses(), {.worker = worker});
      for (int64_t step = 0; step < 30; ++step) {
        EXPECT_EQ(served.pull(), step);
        if (worker == 0) std::this_thread::sleep_for(milliseconds(5));
        if (worker == 1) ahead = std::max(ahead.load(), step - slow.load());
        loss_of(net, batch_of(step, worker)).backward();
        served.push(2);
        if (worker == 0) slow = step + 1;
      }
    });
    for (const ServerReport& report : all.reports()) {
      EXPECT_EQ(report.updates, 90);
      EXPECT_LE(report.most_staleness, staleness);
      if (staleness > 0) EXPECT_GT(report.most_staleness, 0);
    }
    EXPECT_LE(ahead.load(), staleness + 1);  // `slow` is counted after the push
  }
}

TEST(ParameterServer, WorkersComeAndGo) {
  for (const bool synchronous : {true, false}) {
    Servers all(2, {.workers = 2, .synchronous = synchronous, .optimizer_options = {{"lr", 0.1}}});
    std::atomic<int64_t> steps_of_0 = 0;
    with_workers(4, [&](int worker) {
      while (worker >= 2 && steps_of_0 < 5 * worker) std::this_thread::sleep_for(milliseconds(1));
      auto net = net_of();
      ServedParameters served(net->parameters(), all.addresses(), {.worker = worker});
      const int64_t first = served.pull(), count = worker == 0 ? 60 : 10;
      if (worker >= 2) EXPECT_GT(first, 0);
      for (int64_t step = first; step < first + count; ++step) {
        loss_of(net, batch_of(step, worker)).backward();
        served.push(2);
        if (worker == 0) ++steps_of_0;
        EXPECT_EQ(served.pull(), step + 1);
      }
    });
    for (const ServerReport& report : all.reports()) {
      EXPECT_EQ(report.updates, synchronous ? 60 : 90);
      EXPECT_EQ(report.lost, 0);
      EXPECT_EQ(report.late, 0);
    }
  }
}

// The worker that comes again is one, not two.
TEST(ParameterServer, BeginsOnceAllAreHereAtOnce) {
  Servers all(1, {.workers = 2});
  auto net = net_of();
  for (int i = 0; i < 20; ++i) ServedParameters(net->parameters(), all.addresses());
  std::atomic<bool> second = false;
  with_workers(2, [&](int worker) {
    auto own = net_of();
    if (worker == 1) std::this_thread::sleep_for(milliseconds(300));
    if (worker == 1) second = true;
    ServedParameters served(own->parameters(), all.addresses(), {.worker = worker});
    served.pull();
    EXPECT_TRUE(second);
    loss_of(own, batch_of(0, worker)).backward();
    served.push(2);
  });
  EXPECT_EQ(all.reports()[0].updates, 1);
}

TEST(ParameterServer, EndsWhereAllHaveLeftBeforeTheFirstStep) {
  Servers all(2, {.workers = 3, .patience = milliseconds(100)});
  {
    auto net = net_of();
    ServedParameters served(net->parameters(), all.addresses());
    EXPECT_THAT(refusal<CommError>([&] { served.pull(); }), HasSubstr("1 of 3 workers are here"));
  }
  for (const std::string& error : all.errors()) {
    EXPECT_THAT(error, HasSubstr("of 3 workers 1 has come, and left before the first step"));
  }
}

TEST(ParameterServer, AStepEndsWithTheWorkersThatStay) {
  Servers all(1, {.workers = 2});
  with_workers(2, [&](int worker) {
    auto net = net_of();
    ServedParameters served(net->parameters(), all.addresses(), {.worker = worker});
    served.pull();
    if (worker == 1) return std::this_thread::sleep_for(milliseconds(300));  // leaves when the other one waits
    loss_of(net, batch_of(0, worker)).backward();
    served.push(2);
    EXPECT_EQ(served.pull(), 1);
  });
  EXPECT_EQ(all.reports()[0].updates, 1);
}

TEST(ParameterServer, AWorkerThatStandsStillAfterItsPushIsDropped) {
  for (const bool synchronous : {true, false}) {
    Servers all(1, {.workers = 2, .synchronous = synchronous, .staleness = 1, .patience = milliseconds(300)});
    std::barrier<> end(2);
    with_workers(2, [&](int worker) {
      auto net = net_of();
      ServedParameters served(net->parameters(), all.addresses(), {.worker = worker});
      for (int64_t step = 0; step < (worker == 0 ? 6 : 1); ++step) {
        served.pull();
        loss_of(net, batch_of(step, worker)).backward();
        served.push(2);
      }
      end.arrive_and_wait();
    });
    EXPECT_EQ(all.reports()[0].lost, 1);
  }
}

TEST(ParameterServer, AWorkerThatStandsStillIsDropped) {
  for (const bool synchronous : {true, false}) {
    Servers all(1, {.workers = 2, .synchronous = synchronous, .staleness = 1, .patience = milliseconds(300)});
    std::barrier<> end(2);
    with_workers(2, [&](int worker) {
      auto net = net_of();
      ServedParameters served(net->parameters(), all.addresses(), {.worker = worker});
      const int64_t count = worker == 0 ? 8 : 2;
      for (int64_t step = 0; step < count; ++step) {
        served.pull();
        loss_of(net, batch_of(step, worker)).backward();
        if (worker == 1 && step == 1) break;  // stands still
        served.push(2);
      }
      end.arrive_and_wait();
      if (worker == 1) {
        EXPECT_THAT(refusal<CommError>([&] {
                      served.push(2);
                      served.pull();
                    }),
                    HasSubstr("is gone while worker 1 "));
      }
    });
    EXPECT_EQ(all.reports()[0].lost, 1);
  }
}

// The worker that comes in the place of one that stands still has a patience of its own.
TEST(ParameterServer, AWorkerThatHasJustComeIsNotDroppedForAnother) {
  Servers all(1, {.workers = 2, .patience = milliseconds(1500)});
  std::barrier<> end(3);
  with_workers(3, [&](int worker) {
    auto net = net_of();
    if (worker == 2) std::this_thread::sleep_for(milliseconds(1200));
    ServedParameters served(net->parameters(), all.addresses(), {.worker = worker});
    for (int64_t step = 0; step < 4; ++step) {
      if (worker == 1 && step == 1) break;  // stands still
      served.pull();
      if (worker == 2) std::this_thread::sleep_for(milliseconds(500));
      loss_of(net, batch_of(step, worker)).backward();
      served.push(2);
    }
    end.arrive_and_wait();
  });
  EXPECT_EQ(all.reports()[0].lost, 1);
}

TEST(ParameterServer, AWorkerThatWaitsHasSignsOfLifeWhileOthersAreBusy) {
  Servers all(1, {.workers = 3, .synchronous = false, .staleness = 1, .optimizer_options = {{"lr", 0.1}}});
  std::atomic<bool> done = false;
  with_workers(3, [&](int worker) {
    auto net = net_of();
    ServedParameters served(net->parameters(), all.addresses(), {.worker = worker, .patience = milliseconds(1200)});
    served.pull();
    if (worker == 1) std::this_thread::sleep_for(milliseconds(2500));  // for which worker 0 waits
    for (int step = 0; step < (worker == 0 ? 2 : 1); ++step) {
      loss_of(net, batch_of(step, worker)).backward();
      served.push(2);
      served.pull();
    }
    if (worker == 0) done = true;
    while (worker == 2 && !done) {  // comes and goes all the time
      auto other = net_of();
      const ServedParameters guest(other->parameters(), all.addresses(), {.worker = 3});
      std::this_thread::sleep_for(milliseconds(50));
    }
  });
  EXPECT_EQ(all.reports()[0].lost, 0);
}

TEST(ParameterServer, ADroppedWorkerIsToldSo) {
  Servers all(1, {.workers = 2, .patience = milliseconds(300)});
  std::barrier<> end(2);
  with_workers(2, [&](int worker) {
    auto net = net_of();
    ServedParameters served(net->parameters(), all.addresses(), {.worker = worker});
    served.pull();
    loss_of(net, batch_of(0, worker)).backward();
    if (worker == 0) {
      served.push(2);
      served.pull();
    }
    end.arrive_and_wait();
    if (worker == 1) {
      EXPECT_THAT(refusal<CommError>([&] {
                    served.push(2);
                    served.pull();
                  }),
                  HasSubstr("it was dropped, for others have waited for it for 300 ms"));
    }
  });
}

TEST(ParameterServer, WhatCanNotBeRightIsNamed) {
  auto net = net_of();
  const auto parameters = net->parameters();
  EXPECT_THAT(refusal([&] { ParameterServer(parameters, {.server = 0, .servers = 20}); }),
              HasSubstr("parameter server 0 of 20: there are 15 weights that are trained"));
  EXPECT_THAT(refusal([&] { ParameterServer(parameters, {.optimizer = "lamb"}); }), HasSubstr("lamb takes norms"));
  EXPECT_THAT(refusal([&] { ParameterServer(parameters, {.workers = 0}); }), HasSubstr("0 workers"));
  EXPECT_THAT(refusal([&] { ParameterServer(parameters, {.host = "192.0.2.1"}); }),
              HasSubstr("192.0.2.1 is no address of this machine"));
  EXPECT_THAT(refusal([&] { ServedParameters(parameters, {}); }), HasSubstr("none is named"));
  EXPECT_THAT(refusal([&] { ServedParameters(parameters, {"127.0.0.1:1"}, {.worker = -1}); }),
              HasSubstr("a worker -1; their numbers begin with 0"));

  Servers all(1, {.workers = 2, .patience = milliseconds(200)});
  torch::nn::Linear other(5, 3);
  EXPECT_THAT(refusal([&] { ServedParameters(other->parameters(), all.addresses()); }), HasSubstr("of 18 weights"));
  const rendezvous::Address taken = rendezvous::parse_address("tcp://" + all.addresses()[0]);
  EXPECT_THAT(refusal([&] { ParameterServer(parameters, {.port = taken.port}); }),
              HasSubstr("can't listen at 127.0.0.1:"));
  ServedParameters first(parameters, all.addresses());
  EXPECT_THAT(refusal([&] { ServedParameters(parameters, all.addresses()); }), HasSubstr("a worker 0 is here already"));
  EXPECT_THAT(refusal([&] { first.push(1); }), HasSubstr("a push without a pull"));
  EXPECT_THAT(refusal<CommError>([&] { first.pull(); }), HasSubstr("1 of 2 workers are here"));
}

TEST(ParameterServer, RubbishHarmsNobody) {
  Servers all(1, {.workers = 1});
  const rendezvous::Address address = rendezvous::parse_address("tcp://" + all.addresses()[0]);
  const auto stranger = rendezvous::connect_to(address.host, address.port, milliseconds(1000));
  const std::string text = "GET / HTTP/1.1\r\n\r\n                                            ";
  ASSERT_EQ(::send(stranger.descriptor.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
  auto net = net_of();
  ServedParameters served(net->parameters(), all.addresses());
  EXPECT_EQ(served.pull(), 0);
}

}  // namespace
}  // namespace lockstep::parallel
