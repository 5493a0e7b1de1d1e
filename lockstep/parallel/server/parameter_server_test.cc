#include "lockstep/parallel/server/parameter_server.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <torch/nn/modules/linear.h>

#include <atomic>
#include <barrier>
#include <memory>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/parallel/server/served_parameters.h"
#include "lockstep/rendezvous/place/address.h"
#include "lockstep/rendezvous/place/tcp_sockets.h"

namespace lockstep::parallel {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

torch::nn::Linear net_of() {
  at::manual_seed(2);
  return torch::nn::Linear(4, 3);
}
at::Tensor batch_of(int64_t step, int worker) {
  at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(100 * step + worker));
  return at::rand({2, 4}, generator);
}
at::Tensor loss_of(torch::nn::Linear& net, const at::Tensor& x) {
  return at::cross_entropy_loss(net->forward(x), (x.sum(1) * 10).to(at::kLong).remainder(3));
}

// Servers of one network that run until the last worker has left.
class Servers {
 public:
  explicit Servers(int count, ParameterServerOptions options) {
    auto net = net_of();
    options.servers = count;
    for (options.server = 0; options.server < count; ++options.server) {
      servers_.push_back(std::make_unique<ParameterServer>(net->parameters(), options));
    }
    reports_.resize(servers_.size());
    for (size_t i = 0; i < servers_.size(); ++i) {
      threads_.emplace_back([this, i] { reports_[i] = servers_[i]->serve(); });
    }
  }
  ~Servers() {
    for (auto& server : servers_) server->stop();
    join();
  }
  std::vector<std::string> addresses() const {
    std::vector<std::string> all;
    for (const auto& server : servers_) all.push_back(server->address());
    return all;
  }
  const std::vector<ServerReport>& reports() {
    join();
    return reports_;
  }
  ParameterServer& operator[](size_t i) { return *servers_[i]; }

 private:
  void join() {
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }
  std::vector<std::unique_ptr<ParameterServer>> servers_;
  std::vector<ServerReport> reports_;
  std::vector<std::thread> threads_;
};

// Runs a worker in each of so many threads.
void with_workers(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (auto& thread : threads) thread.join();
}

// The weights after so many steps of SGD with momentum over all workers' batches at once.
std::vector<at::Tensor> alone(int workers, int64_t steps) {
  auto net = net_of();
  const auto sgd = optim::make_optimizer("sgd", net->parameters(), {{"lr", 0.5}, {"momentum", 0.9}});
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<at::Tensor> batches;
    for (int worker = 0; worker < workers; ++worker) batches.push_back(batch_of(step, worker));
    net->zero_grad();
    loss_of(net, at::cat(batches)).backward();
    sgd->update({});
  }
  return net->parameters();
}

void expect_close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) EXPECT_LT((a[i] - b[i]).abs().max().item<double>(), 1e-5) << i;
}

template <typename Error>
std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

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
        EXPECT_THAT(text_of<CommError>([&] {
                      served.push(2);
                      served.pull();
                    }),
                    HasSubstr("is gone while worker 1 "));
      }
    });
    EXPECT_EQ(all.reports()[0].lost, 1);
  }
}

TEST(ParameterServer, WhatCanNotBeRightIsNamed) {
  auto net = net_of();
  const auto parameters = net->parameters();
  const auto config = [](const std::function<void()>& call) { return text_of<ConfigError>(call); };
  EXPECT_THAT(config([&] { ParameterServer(parameters, {.server = 0, .servers = 20}); }),
              HasSubstr("parameter server 0 of 20: there are 15 weights that are trained"));
  EXPECT_THAT(config([&] { ParameterServer(parameters, {.optimizer = "lamb"}); }), HasSubstr("lamb takes norms"));
  EXPECT_THAT(config([&] { ParameterServer(parameters, {.workers = 0}); }), HasSubstr("0 workers"));
  EXPECT_THAT(config([&] { ParameterServer(parameters, {.host = "192.0.2.1"}).address(); }),
              ::testing::AnyOf(HasSubstr("can't listen"), HasSubstr("nothing")));
  EXPECT_THAT(config([&] { ServedParameters(parameters, {}); }), HasSubstr("none is named"));

  Servers all(1, {.workers = 2, .patience = milliseconds(200)});
  torch::nn::Linear other(5, 3);
  EXPECT_THAT(config([&] { ServedParameters(other->parameters(), all.addresses()); }), HasSubstr("of 18 weights"));
  ServedParameters first(parameters, all.addresses());
  EXPECT_THAT(config([&] { ServedParameters(parameters, all.addresses()); }), HasSubstr("a worker 0 is here already"));
  EXPECT_THAT(config([&] { first.push(1); }), HasSubstr("a push without a pull"));
  EXPECT_THAT(text_of<CommError>([&] { first.pull(); }), HasSubstr("1 of 2 workers are here"));
}

TEST(ParameterServer, AServerThatIsNotThereOrGoesIsNamed) {
  auto net = net_of();
  auto free = rendezvous::listen_at("127.0.0.1", 0);
  const std::string nobody = "127.0.0.1:" + std::to_string(rendezvous::port_of(free.descriptor));
  free = {};
  Servers all(1, {.workers = 1});
  EXPECT_THAT(
      text_of<CommError>([&] { ServedParameters(net->parameters(), {nobody}, {.patience = milliseconds(300)}); }),
      HasSubstr("parameter server 0 of 1 (" + nobody + ") can't be reached"));
  ServedParameters served(net->parameters(), all.addresses());
  served.pull();
  all[0].stop();
  EXPECT_THAT(text_of<CommError>([&] {
                for (int i = 0; i < 100; ++i) {
                  served.push(1);
                  served.pull();
                }
              }),
              HasSubstr("is gone while worker 0 "));
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
