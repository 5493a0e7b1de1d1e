// Parameter servers (Li et al., "Scaling distributed machine learning with the parameter server", OSDI 2014): each
// keeps a part of the weights and of the optimizer's state, to which workers push gradients and from which they pull
// weights.
//
//   ParameterServer server(net->parameters(), {.workers = 4, .optimizer = "sgd", .optimizer_options = {{"lr", 0.1}}});
//   print(server.address());                       // for the workers
//   server.serve();
//
// It is for workers that come and go, and for comparison: data parallelism sends less and keeps bits
// (docs/choosing.md).
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/base/log.h"
#include "lockstep/optim/fused_optimizer.h"
#include "lockstep/optim/rules/make_optimizer.h"
#include "lockstep/parallel/server/messages.h"
#include "lockstep/parallel/server/served_part.h"

namespace lockstep::parallel {

struct ParameterServerOptions {
  int server = 0, servers = 1;  // this one's number, and how many share the weights
  std::string host = "127.0.0.1";
  int port = 0;     // 0: one that is free
  int workers = 1;  // before so many are here at once, no step is made
  // true: a step is the mean over all workers' samples, as in data parallelism. false: each gradient is a step.
  bool synchronous = true;
  // Asynchronous: how many steps a worker may be ahead of the slowest one (Ho et al., "More effective distributed ML
  // via a stale synchronous parallel parameter server", 2013).
  int64_t staleness = 4;
  std::string optimizer = "sgd";
  optim::NamedOptions optimizer_options = {};
  std::chrono::milliseconds patience{60'000};  // with a worker for which others wait; then it is dropped
};

struct ServerReport {
  int64_t updates = 0;
  int workers = 0, lost = 0;   // that have come, and of these without a word
  int64_t most_staleness = 0;  // steps that a worker was ahead of the slowest one
  int64_t late = 0;            // gradients for a step that was over, which are dropped
  uint64_t bytes = 0;          // sent and received
};

// A part of the weights, in fp32. serve() has a thread for each worker; stop() may be called from any.
class ParameterServer {
 public:
  // `parameters`: of the whole network, whose values are the first that workers get. Listens from here on. Throws
  // ConfigError for an optimizer that needs whole parameters (LAMB, LARS, NovoGrad), a part without weights, and an
  // address that is not to be had.
  ParameterServer(const std::vector<at::Tensor>& parameters, const ParameterServerOptions& options);
  ~ParameterServer();

  std::string address() const;  // "127.0.0.1:41233"
  // Serves until the last of the workers has left, after as many have come as the options say, or until stop(). Throws
  // what an update throws, such as for want of memory, and CommError where all who had come have left before the first
  // step, and nobody else comes within the patience.
  ServerReport serve();
  void stop();

 private:
  struct Worker {
    std::shared_ptr<Connection> connection;
    int64_t clock = 0;       // synchronous: the step that it computes; asynchronous: the steps that it has made
    bool is_away = false;    // computes, or has not come to its first pull; else it waits here
    int64_t away_since = 0;  // monotonic_ns()
  };
  struct Pushed {
    at::Tensor gradient;
    std::string present = {};  // by piece: not 0 where it has a gradient
    double samples = 0, lr = 0;
  };
  // A connection's thread.
  struct Talk {
    std::thread thread;
    std::shared_ptr<std::atomic<bool>> has_ended;
  };

  void begin_talk(Descriptor socket);
  void join_ended();
  void talk(const std::shared_ptr<Connection>& connection);
  void enter(const std::shared_ptr<Connection>& connection, int& number);
  void talk_to(int number, Connection& connection);
  void leave(int number, const std::string& why);
  void push(int number, const MessageHead& head, Pushed pushed);
  int64_t pull(int number, int64_t clock, Connection& connection, const at::Tensor& to);
  bool may_go(int64_t clock) const;
  void complete_step();
  void update(const Pushed& pushed) noexcept;
  std::string how() const;
  int64_t slowest() const;
  void drop_those_waited_for(int64_t since);
  std::string why_stopped() const;
  void check_open() const;
  void check_start() const;

  ParameterServerOptions options_;
  Logger log_ = Logger::from_environment("");
  ServedPart part_;
  at::Tensor weights_;              // flat
  std::vector<at::Tensor> pieces_;  // views of them: the optimizer's parameters
  std::unique_ptr<optim::FusedOptimizer> optimizer_;
  Descriptor listener_;

  mutable std::mutex mutex_;  // of all below, and of the weights
  std::condition_variable changed_;
  std::map<int, Worker> workers_;  // by number: those that are here
  std::map<int, Pushed> pushed_;   // by worker: for the step under way
  int64_t clock_ = 0;              // synchronous: the step under way; asynchronous: the most that a worker has made
  bool started_ = false;           // as many workers as were asked for have been here at once
  int64_t left_ns_ = 0;            // monotonic_ns() when a worker left last
  bool stopping_ = false;
  std::exception_ptr failure_;  // of an update, which ends the server
  std::string how_;             // how(), once it is made
  ServerReport report_;
  std::vector<Talk> talks_;  // of the thread that serves
};

}  // namespace lockstep::parallel
