#include "lockstep/parallel/server/served_parameters.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <thread>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/parallel/server/testing/servers.h"
#include "lockstep/rendezvous/place/tcp_sockets.h"

namespace lockstep::parallel {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing_support::refusal;

TEST(ParameterServer, BatchesOfDifferentSizesCountBySamples) {
  Servers all(1, {.workers = 2, .optimizer_options = {{"lr", 1}}});
  const at::Tensor start = net_of()->bias.detach().clone();
  with_workers(2, [&](int worker) {
    torch::nn::Linear net(4, 3);
    ServedParameters served(net->parameters(), all.addresses(), {.worker = worker});
    served.pull();
    net->bias.mutable_grad() = at::full({3}, worker == 0 ? 1.0 : 5.0);  // weight has none
    served.push(worker == 0 ? 3 : 1);
    served.pull();
    EXPECT_LT((net->bias - (start - 2)).abs().max().item<double>(), 1e-6);
  });
}

TEST(ParameterServer, ANewRateCountsFromItsStepOn) {
  Servers all(1, {.workers = 1, .optimizer_options = {{"lr", 1}}});
  torch::nn::Linear net(4, 3);
  ServedParameters served(net->parameters(), all.addresses());
  double expected = 0;
  for (const double lr : {0.5, std::nan(""), 0.25}) {
    served.pull();
    const at::Tensor before = net->bias.detach().clone();
    net->bias.mutable_grad() = at::ones({3});
    served.push(1, lr);
    served.pull();
    expected = std::isnan(lr) ? 0.5 : lr;
    EXPECT_LT((before - net->bias - expected).abs().max().item<double>(), 1e-6);
    net->bias.mutable_grad() = at::zeros({3});
    served.push(1);
  }
}

TEST(ParameterServer, FrozenAndUnusedWeightsStayAsTheyAre) {
  struct PartlyImpl : torch::nn::Module {
    PartlyImpl() {
      used = register_module("used", torch::nn::Linear(4, 3));
      frozen = register_module("frozen", torch::nn::Linear(4, 3));
      unused = register_module("unused", torch::nn::Linear(4, 3));
      for (auto& parameter : frozen->parameters()) parameter.requires_grad_(false);
    }
    torch::nn::Linear used{nullptr}, frozen{nullptr}, unused{nullptr};
  };
  at::manual_seed(1);
  const PartlyImpl first;
  std::vector<std::unique_ptr<ParameterServer>> servers;
  std::vector<std::string> addresses;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    servers.push_back(std::make_unique<ParameterServer>(
        first.parameters(),
        ParameterServerOptions{.server = i, .servers = 2, .optimizer = "adamw", .optimizer_options = {{"lr", 0.1}}}));
    addresses.push_back(servers.back()->address());
    threads.emplace_back([server = servers.back().get()] { server->serve(); });
  }
  {
    at::manual_seed(1);
    PartlyImpl net;
    ServedParameters served(net.parameters(), addresses);
    for (int64_t step = 0; step < 10; ++step) {
      served.pull();
      loss_of(net.used, batch_of(step, 0)).backward();
      served.push(2);
    }
    served.pull();
    EXPECT_FALSE(net.used->weight.equal(first.used->weight));
    EXPECT_TRUE(net.frozen->weight.equal(first.frozen->weight));
    EXPECT_TRUE(net.unused->weight.equal(first.unused->weight));
  }
  for (auto& thread : threads) thread.join();
}

TEST(ParameterServer, AWorkerWithoutSamplesGoesOnWithTheOthers) {
  for (const bool synchronous : {true, false}) {
    Servers all(1, {.workers = 2, .synchronous = synchronous, .staleness = 0, .optimizer_options = {{"lr", 1}}});
    const at::Tensor start = net_of()->bias.detach().clone();
    with_workers(2, [&](int worker) {
      torch::nn::Linear net(4, 3);
      ServedParameters served(net->parameters(), all.addresses(), {.worker = worker});
      for (int step = 0; step < 4; ++step) {
        EXPECT_EQ(served.pull(), step);
        if (worker == 0) net->bias.mutable_grad() = at::ones({3});
        served.push(worker == 0 ? 2 : 0);
      }
      served.pull();
      EXPECT_LT((net->bias - (start - 4)).abs().max().item<double>(), 1e-6);
    });
  }
}

// After an error a message may be half sent: nothing more is.
TEST(ParameterServer, AnErrorIsTheLastOfAWorkersCalls) {
  Servers all(1, {.workers = 2, .patience = milliseconds(100'000)});
  auto net = net_of();
  ServedParameters served(net->parameters(), all.addresses(), {.patience = milliseconds(400)});
  EXPECT_THAT(refusal<CommError>([&] {  // the other worker does not come, and a sign of life is sent less often
                served.pull();
              }),
              HasSubstr("has said nothing to worker 0 for 400 ms"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(refusal<CommError>([&] { served.pull(); }), HasSubstr("make ServedParameters anew after an error: "));
  }
  all[0].stop();
}

// What has another protocol is told at once, not after a patience.
TEST(ParameterServer, AServerOfAnotherProtocolIsToldSo) {
  auto net = net_of();
  auto listening = rendezvous::listen_at("127.0.0.1", 0);
  ASSERT_TRUE(listening.descriptor);
  std::thread other([&] {
    pollfd state{.fd = listening.descriptor.get(), .events = POLLIN, .revents = 0};
    poll(&state, 1, 10'000);
    const Descriptor peer = rendezvous::accept_on(listening.descriptor);
    const std::string banner(64, 'S');
    EXPECT_EQ(::send(peer.get(), banner.data(), banner.size(), MSG_NOSIGNAL), std::ssize(banner));
    char byte = 0;
    while (::recv(peer.get(), &byte, 1, 0) != 0 && (errno == EAGAIN || byte == 0)) poll(nullptr, 0, 10);
  });
  const std::string address = "127.0.0.1:" + std::to_string(rendezvous::port_of(listening.descriptor));
  EXPECT_THAT(
      refusal<CommError>([&] { ServedParameters(net->parameters(), {address}, {.patience = milliseconds(60'000)}); }),
      HasSubstr("it speaks another protocol"));
  other.join();
}

// The order of options, and defaults that are written out, are no difference; and a worker that leaves for servers that
// differ ends none of them.
TEST(ParameterServer, OptionsAreComparedByWhatTheyMean) {
  auto net = net_of();
  ParameterServer first(net->parameters(),
                        {.server = 0, .servers = 2, .optimizer_options = {{"lr", 0.1}, {"momentum", 0.9}}});
  ParameterServer same(
      net->parameters(),
      {.server = 1, .servers = 2, .optimizer_options = {{"momentum", 0.9}, {"lr", 0.1}, {"nesterov", false}}});
  ParameterServer other(net->parameters(), {.server = 1, .servers = 2, .optimizer_options = {{"lr", 0.2}}});
  std::thread a([&] { first.serve(); }), b([&] { same.serve(); }), c([&] { other.serve(); });
  EXPECT_THAT(refusal([&] {
                ServedParameters(net->parameters(), {first.address(), other.address()});
              }),
              HasSubstr("give all of them the same options"));
  {
    ServedParameters served(net->parameters(), {first.address(), same.address()});
    EXPECT_EQ(served.pull(), 0);
  }
  other.stop();
  a.join(), b.join(), c.join();
}

TEST(ParameterServer, ServersOfOtherOptionsAreNamed) {
  auto net = net_of();
  const ParameterServer one(net->parameters(), {.server = 0, .servers = 2, .optimizer_options = {{"lr", 0.1}}});
  for (const ParameterServerOptions& options :
       {ParameterServerOptions{.server = 1, .servers = 2, .optimizer_options = {{"lr", 0.2}}},
        ParameterServerOptions{.server = 1, .servers = 2, .synchronous = false, .optimizer_options = {{"lr", 0.1}}},
        ParameterServerOptions{.server = 1, .servers = 2, .optimizer = "adam", .optimizer_options = {{"lr", 0.1}}}}) {
    ParameterServer first(net->parameters(), {.server = 0, .servers = 2, .optimizer_options = {{"lr", 0.1}}});
    ParameterServer other(net->parameters(), options);
    std::thread a([&] { first.serve(); }), b([&] { other.serve(); });
    EXPECT_THAT(refusal([&] {
                  ServedParameters(net->parameters(), {first.address(), other.address()});
                }),
                HasSubstr("parameter server 1 of 2 (" + other.address() + ") has "));
    first.stop(), other.stop();
    a.join(), b.join();
  }
}

TEST(ParameterServer, AServerThatIsNotThereOrGoesIsNamed) {
  auto net = net_of();
  auto free = rendezvous::listen_at("127.0.0.1", 0);
  const std::string nobody = "127.0.0.1:" + std::to_string(rendezvous::port_of(free.descriptor));
  free = {};
  Servers all(1, {.workers = 1});
  EXPECT_THAT(
      refusal<CommError>([&] { ServedParameters(net->parameters(), {nobody}, {.patience = milliseconds(300)}); }),
      HasSubstr("parameter server 0 of 1 (" + nobody + ") can't be reached"));
  ServedParameters served(net->parameters(), all.addresses());
  served.pull();
  all[0].stop();
  EXPECT_THAT(refusal<CommError>([&] {
                for (int i = 0; i < 100; ++i) {
                  served.push(1);
                  served.pull();
                }
              }),
              HasSubstr("is gone while worker 0 "));
}

}  // namespace
}  // namespace lockstep::parallel
