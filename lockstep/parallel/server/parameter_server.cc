#include "lockstep/parallel/server/parameter_server.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/base/sigpipe.h"
#include "lockstep/comm/fold_tree.h"
#include "lockstep/rendezvous/place/tcp_sockets.h"

namespace lockstep::parallel {
namespace {

constexpr int kTick = 50;                              // milliseconds between looks at stop()
constexpr std::chrono::milliseconds kSignOfLife{500};  // to a worker that waits

struct Stopped {};

std::span<float> values_of(const at::Tensor& flat) {
  return {flat.mutable_data_ptr<float>(), static_cast<size_t>(flat.numel())};
}

}  // namespace

ParameterServer::ParameterServer(const std::vector<at::Tensor>& parameters, const ParameterServerOptions& options)
    : options_(options),
      part_(parameters, options.server, options.servers),
      weights_(at::empty({part_.elements()}, at::kFloat)),
      gradient_(at::empty({part_.elements()}, at::kFloat)) {
  if (options.workers < 1) throw ConfigError("parameter server: ", options.workers, " workers; at least one is needed");
  if (options.staleness < 0) throw ConfigError("parameter server: a staleness of ", options.staleness, "; 0 or more");
  part_.take(parameters, weights_);
  std::vector<at::Tensor> pieces = part_.pieces_of(weights_);
  const std::vector<at::Tensor> gradients = part_.pieces_of(gradient_);
  for (size_t i = 0; i < pieces.size(); ++i) pieces[i].requires_grad_(true).mutable_grad() = gradients[i];
  optimizer_ = optim::make_optimizer(options.optimizer, pieces, options.optimizer_options);
  if (!optimizer_->elementwise()) {
    throw ConfigError("parameter server: ", optimizer_->name(),
                      " takes norms of whole parameters, and servers have parts of them; take sgd, adam or adamw");
  }
  auto socket = rendezvous::listen_at(options.host, options.port);
  if (!socket.descriptor) {
    throw ConfigError("parameter server ", options.server, ": can't listen at ", options.host, ':', options.port, ": ",
                      socket.text.empty() ? "no such address" : socket.text);
  }
  listener_ = std::move(socket.descriptor);
}

ParameterServer::~ParameterServer() {
  stop();
  for (auto& thread : threads_) thread.join();
}

std::string ParameterServer::address() const { return cat(options_.host, ':', rendezvous::port_of(listener_)); }

ServerReport ParameterServer::serve() {
  const auto is_over = [this] {
    const std::lock_guard lock(mutex_);
    return stopping_ || (report_.workers >= options_.workers && workers_.empty());
  };
  while (!is_over()) {
    pollfd state{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    if (poll(&state, 1, kTick) <= 0) continue;
    Descriptor socket = rendezvous::accept_on(listener_);
    if (!socket) continue;
    const SigpipeBlocked blocked;
    const auto connection = std::make_shared<Connection>(std::move(socket), [this] { check_open(); });
    threads_.emplace_back([this, connection] { talk(connection); });
  }
  stop();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
  const std::lock_guard lock(mutex_);
  return report_;
}

void ParameterServer::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

void ParameterServer::check_open() const {
  const std::lock_guard lock(mutex_);
  if (stopping_) throw Stopped();
}

// Serves one connection from its first message to its end.
void ParameterServer::talk(const std::shared_ptr<Connection>& connection) {
  int number = -1;
  std::string why;
  try {
    number = enter(connection);
    if (number >= 0) talk_to(number, *connection);
  } catch (const ConnectionLost& lost) {
    why = lost.why;
  } catch (const Stopped&) {
    why = "the server ends";
  } catch (const std::exception& error) {
    why = error.what();
    try {
      connection->send({.kind = MessageKind::kRefused}, bytes_of(why));
    } catch (const ConnectionLost&) {
    }
  }
  const std::lock_guard lock(mutex_);
  report_.bytes += connection->bytes();
  if (number >= 0) leave(number, why);
}

// Returns the worker's number; -1 for one that is refused.
int ParameterServer::enter(const std::shared_ptr<Connection>& connection) {
  const MessageHead hello = connection->receive();
  if (hello.kind != MessageKind::kHello) throw ConnectionLost{"it is no worker"};
  const std::string theirs = connection->receive_text(hello);
  const auto number = static_cast<int>(hello.clock);
  std::string refused;
  {
    const std::lock_guard lock(mutex_);
    if (theirs != part_.text()) {
      refused = cat("the worker has ", theirs, "; this is ", part_.text());
    } else if (workers_.contains(number)) {
      refused = cat("a worker ", number, " is here already, from ", workers_.at(number).connection->peer());
    } else {
      const int64_t clock = options_.synchronous || workers_.empty() ? clock_ : slowest();
      workers_[number] = {.connection = connection, .clock = clock, .is_away = true};
      ++report_.workers;
      changed_.notify_all();
    }
  }
  if (!refused.empty()) {
    connection->send({.kind = MessageKind::kRefused}, bytes_of(refused));
    return -1;
  }
  connection->send({.kind = MessageKind::kWelcome});
  return number;
}

void ParameterServer::talk_to(int number, Connection& connection) {
  const at::Tensor weights = at::empty_like(weights_);
  for (;;) {
    check_open();
    const MessageHead head = connection.receive();
    if (head.kind == MessageKind::kBye) return;
    if (head.kind == MessageKind::kPull) {
      const int64_t clock = pull(number, head.clock, connection, weights);
      connection.send({.kind = MessageKind::kWeights, .clock = clock}, bytes_of(values_of(weights)));
    } else if (head.kind == MessageKind::kPush && head.bytes == weights_.nbytes()) {
      const at::Tensor gradient = at::empty_like(weights_);
      connection.receive_bytes(bytes_of(values_of(gradient)));
      push(number, head, gradient);
    } else {
      throw ConnectionLost{"it speaks another protocol"};
    }
  }
}

// With the mutex held.
void ParameterServer::leave(int number, const std::string& why) {
  workers_.erase(number);
  if (!why.empty() && !stopping_) {
    ++report_.lost;
    log_.warning("parameter server ", options_.server, ": worker ", number, " is gone: ", why);
  }
  if (options_.synchronous) complete_step();
  changed_.notify_all();
}

int64_t ParameterServer::slowest() const {
  int64_t least = clock_;
  for (const auto& [number, worker] : workers_) least = std::min(least, worker.clock);
  return least;
}

bool ParameterServer::may_go(int64_t clock) const {
  if (report_.workers < options_.workers) return false;
  return options_.synchronous ? clock_ >= clock : clock - slowest() <= options_.staleness;
}

int64_t ParameterServer::pull(int number, int64_t clock, Connection& connection, const at::Tensor& to) {
  std::unique_lock lock(mutex_);
  Worker& own = workers_.at(number);
  if (clock >= 0) own.clock = clock;
  own.is_away = false;
  if (options_.synchronous) complete_step();  // a step that this worker leaves out
  changed_.notify_all();
  const Deadline deadline(options_.patience);
  while (!may_go(own.clock)) {
    if (stopping_) throw Stopped();
    if (deadline.passed())
      drop_those_waited_for(cat("others have waited for it for ", options_.patience.count(), " ms"));
    if (changed_.wait_for(lock, kSignOfLife) == std::cv_status::no_timeout) continue;
    lock.unlock();
    connection.send({.kind = MessageKind::kWait});
    lock.lock();
  }
  own.is_away = true;
  if (options_.synchronous) own.clock = clock_;
  report_.most_staleness = std::max(report_.most_staleness, own.clock - slowest());
  to.copy_(weights_);
  return own.clock;
}

// Ends the connections of workers for which others wait. With the mutex held.
void ParameterServer::drop_those_waited_for(const std::string& why) {
  if (report_.workers < options_.workers) {
    throw CommError("parameter server ", options_.server, ": ", report_.workers, " of ", options_.workers,
                    " workers have come in ", options_.patience.count(), " ms; start the others, or ask for fewer");
  }
  const int64_t least = slowest();
  for (auto& [number, worker] : workers_) {
    if (!worker.is_away || worker.clock != least) continue;
    log_.warning("parameter server ", options_.server, ": worker ", number, " is dropped: ", why);
    worker.is_away = false;
    worker.connection->close_for_all();
  }
}

void ParameterServer::push(int number, const MessageHead& head, at::Tensor gradient) {
  const std::lock_guard lock(mutex_);
  Worker& own = workers_.at(number);
  own.is_away = false;
  if (!options_.synchronous) {
    own.clock = head.clock + 1;
    clock_ = std::max(clock_, own.clock);
    update(gradient, head.lr);
  } else if (head.clock == clock_) {
    pushed_[number] = {.gradient = std::move(gradient), .samples = head.samples, .lr = head.lr};
    own.clock = head.clock + 1;
    complete_step();
  } else {
    ++report_.late;
  }
  changed_.notify_all();
}

// Makes the step under way once all workers of it have pushed. With the mutex held.
void ParameterServer::complete_step() {
  if (pushed_.empty() || report_.workers < options_.workers || slowest() < clock_) return;
  if (std::any_of(workers_.begin(), workers_.end(), [this](const auto& each) { return each.second.clock == clock_; })) {
    return;
  }
  double samples = 0;
  for (const auto& [number, pushed] : pushed_) samples += pushed.samples;
  comm::LeafFold<at::Tensor> fold;
  const auto plus = [](const at::Tensor& a, const at::Tensor& b) { return b.add_(a); };
  for (auto& [number, pushed] : pushed_) fold.push(pushed.gradient.mul_(pushed.samples / samples), plus);
  const double lr = pushed_.begin()->second.lr;
  const at::Tensor sum = fold.finish(plus);
  pushed_.clear();
  update(sum, lr);
  ++clock_;
  changed_.notify_all();
}

void ParameterServer::update(const at::Tensor& gradient, double lr) {
  const c10::AutoGradMode no_grad(false);
  gradient_.copy_(gradient);
  if (!std::isnan(lr)) optimizer_->set_lr(lr);
  optimizer_->update({});
  ++report_.updates;
}

}  // namespace lockstep::parallel
