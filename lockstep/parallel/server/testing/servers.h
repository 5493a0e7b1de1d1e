// Parameter servers of a small network in threads of a test, and workers beside them.
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/parallel/server/parameter_server.h"

namespace lockstep::parallel {

inline torch::nn::Linear net_of() {
  at::manual_seed(2);
  return torch::nn::Linear(4, 3);
}
inline at::Tensor batch_of(int64_t step, int worker) {
  at::Generator generator = at::detail::createCPUGenerator(static_cast<uint64_t>(100 * step + worker));
  return at::rand({2, 4}, generator);
}
inline at::Tensor loss_of(torch::nn::Linear& net, const at::Tensor& x) {
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
    errors_.resize(servers_.size());
    for (size_t i = 0; i < servers_.size(); ++i) {
      threads_.emplace_back([this, i] {
        try {
          reports_[i] = servers_[i]->serve();
        } catch (const CommError& error) {
          errors_[i] = error.what();
        }
      });
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
  // Of servers that have ended by an error.
  const std::vector<std::string>& errors() {
    join();
    return errors_;
  }
  ParameterServer& operator[](size_t i) { return *servers_[i]; }

 private:
  void join() {
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }
  std::vector<std::unique_ptr<ParameterServer>> servers_;
  std::vector<ServerReport> reports_;
  std::vector<std::string> errors_;
  std::vector<std::thread> threads_;
};

// Runs a worker in each of so many threads.
inline void with_workers(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
  for (auto& thread : threads) thread.join();
}

// The weights after so many steps of SGD with momentum over all workers' batches at once.
inline std::vector<at::Tensor> alone(int workers, int64_t steps) {
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

inline void expect_close(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) EXPECT_LT((a[i] - b[i]).abs().max().item<double>(), 1e-5) << i;
}

}  // namespace lockstep::parallel
