#include "lockstep/parallel/server/parameter_server.h"

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <poll.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/exception_text.h"
#include "lockstep/base/log.h"
#include "lockstep/base/sigpipe.h"
#include "lockstep/comm/fold_tree.h"
#include "lockstep/optim/named_options.h"
#include "lockstep/rendezvous/place/tcp_sockets.h"

namespace lockstep::parallel {
namespace {

constexpr int kTick = 50;                              // milliseconds between looks at stop()
constexpr std::chrono::milliseconds kLeaving{1000};    // that a worker who comes again waits for its own end
constexpr std::chrono::milliseconds kSignOfLife{500};  // to a worker that waits

struct Stopped {};

}  // namespace

ParameterServer::ParameterServer(const std::vector<at::Tensor>& parameters, const ParameterServerOptions& options)
    : options_(options),
      part_(parameters, options.server, options.servers),
      weights_(at::empty({part_.elements()}, at::kFloat)) {
  if (options.workers < 1) throw ConfigError("parameter server: ", options.workers, " workers; at least one is needed");
  if (options.staleness < 0) throw ConfigError("parameter server: a staleness of ", options.staleness, "; 0 or more");
  part_.take(parameters, weights_);
  pieces_ = part_.pieces_of(weights_);
  for (at::Tensor& piece : pieces_) piece.requires_grad_(true);
  optimizer_ = optim::make_optimizer(options.optimizer, pieces_, options.optimizer_options);
  if (!optimizer_->elementwise()) {
    throw ConfigError("parameter server: ", optimizer_->name(),
                      " takes norms of whole parameters, and servers have parts of them; take sgd, adam or adamw");
  }
  const bool is_any = options.host == "0.0.0.0" || options.host == "::";
  if (!is_any && !rendezvous::is_this_machine(options.host)) {
    throw ConfigError("parameter server ", options.server, ": ", options.host, " is no address of this machine");
  }
  auto socket = rendezvous::listen_at(options.host, options.port);
  if (!socket.descriptor) {
    throw ConfigError("parameter server ", options.server, ": can't listen at ", options.host, ':', options.port, ": ",
                      socket.text.empty() ? "no such address" : socket.text);
  }
  listener_ = std::move(socket.descriptor);
  how_ = how();
}

ParameterServer::~ParameterServer() {
  stop();
  for (Talk& talk : talks_) talk.thread.join();
}

std::string ParameterServer::address() const { return cat(options_.host, ':', rendezvous::port_of(listener_)); }

ServerReport ParameterServer::serve() {
  const auto is_over = [this] {
    const std::lock_guard lock(mutex_);
    check_start();
    return stopping_ || (started_ && workers_.empty());
  };
  while (!is_over()) {
    join_ended();
    pollfd state{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    if (poll(&state, 1, kTick) <= 0) continue;
    Descriptor socket = rendezvous::accept_on(listener_);
    if (socket) begin_talk(std::move(socket));
  }
  stop();
  for (Talk& talk : talks_) talk.thread.join();
  talks_.clear();
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  return report_;
}

// Throws CommError where those that had come have left before the first step, and nobody else comes. With the mutex
// held.
void ParameterServer::check_start() const {
  if (started_ || report_.workers == 0 || !workers_.empty()) return;
  if (monotonic_ns() - left_ns_ < std::chrono::nanoseconds(bounded(options_.patience)).count()) return;
  throw CommError("parameter server ", options_.server, ": of ", options_.workers, " workers ", report_.workers,
                  report_.workers == 1 ? " has" : " have",
                  " come, and left before the first step, and nobody else has for ", options_.patience.count(), " ms");
}

// What all servers of a network have alike.
std::string ParameterServer::how() const {
  std::string text =
      cat(options_.synchronous ? "synchronous steps" : cat("asynchronous steps, staleness ", options_.staleness),
          " of ", options_.workers, " workers by ", options_.optimizer);
  const optim::OptimizerState state = optimizer_->state_dict();  // with options that were left out
  for (const auto& [name, value] : state.groups.at(0).options) text += cat(' ', name, ' ', optim::to_text(value));
  return text;
}

void ParameterServer::begin_talk(Descriptor socket) {
  const SigpipeBlocked blocked;
  const auto connection = std::make_shared<Connection>(std::move(socket), [this] { check_open(); });
  const auto has_ended = std::make_shared<std::atomic<bool>>(false);
  talks_.push_back({std::thread([this, connection, has_ended] {
                      talk(connection);
                      *has_ended = true;
                    }),
                    has_ended});
}

void ParameterServer::join_ended() {
  std::erase_if(talks_, [](Talk& talk) {
    if (!*talk.has_ended) return false;
    talk.thread.join();
    return true;
  });
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

std::string ParameterServer::why_stopped() const {
  const std::lock_guard lock(mutex_);
  if (!failure_) return "the server ends";
  try {
    std::rethrow_exception(failure_);
  } catch (...) {
    return "an update has failed: " + exception_text();
  }
}

// Serves one connection from its first message to its end.
void ParameterServer::talk(const std::shared_ptr<Connection>& connection) {
  int number = -1;
  std::string why;
  try {
    enter(connection, number);
    if (number >= 0) talk_to(number, *connection);
  } catch (const ConnectionLost& lost) {
    why = lost.why;
  } catch (const Stopped&) {
    why = why_stopped();
    connection->close_for_all(why);
  } catch (const std::exception& error) {
    why = error.what();
    connection->close_for_all(why);
  }
  const std::lock_guard lock(mutex_);
  report_.bytes += connection->bytes();
  if (number >= 0) leave(number, why);
}

// Sets the worker's number, and leaves it as it is for one that is refused.
void ParameterServer::enter(const std::shared_ptr<Connection>& connection, int& number) {
  MessageHead hello = connection->receive();
  if (hello.kind == MessageKind::kLook) {
    connection->send({.kind = MessageKind::kOptions}, bytes_of(how_));
    hello = connection->receive();
  }
  if (hello.kind != MessageKind::kHello) throw ConnectionLost{"it is no worker"};
  const std::string theirs = connection->receive_text(hello);
  const auto asked = static_cast<int>(hello.clock);
  std::string refused;
  {
    std::unique_lock lock(mutex_);
    // One that has just left may be on its way out.
    changed_.wait_for(lock, kLeaving, [&] { return stopping_ || !workers_.contains(asked); });
    if (stopping_) throw Stopped();
    if (asked < 0) {
      refused = cat("a worker ", asked, "; their numbers begin with 0");
    } else if (theirs != part_.text()) {
      refused = cat("the worker has ", theirs, "; this is ", part_.text());
    } else if (workers_.contains(asked)) {
      refused = cat("a worker ", asked, " is here already, from ", workers_.at(asked).connection->peer());
    } else {
      const int64_t clock = options_.synchronous || workers_.empty() ? clock_ : slowest();
      workers_[asked] = {.connection = connection, .clock = clock, .is_away = true, .away_since = monotonic_ns()};
      number = asked;
      ++report_.workers;
      started_ = started_ || std::ssize(workers_) >= options_.workers;
      changed_.notify_all();
    }
  }
  if (!refused.empty()) return connection->send({.kind = MessageKind::kRefused}, bytes_of(refused));
  connection->send({.kind = MessageKind::kWelcome});
}

void ParameterServer::talk_to(int number, Connection& connection) {
  const at::Tensor weights = at::empty_like(weights_);
  for (;;) {
    check_open();
    const MessageHead head = connection.receive();
    if (head.kind == MessageKind::kBye) return;
    if (head.kind == MessageKind::kPull) {
      const int64_t clock = pull(number, head.clock, connection, weights);
      connection.send({.kind = MessageKind::kWeights, .clock = clock}, bytes_of(weights));
    } else if (head.kind == MessageKind::kPush && head.bytes == weights_.nbytes() + part_.pieces()) {
      Pushed pushed{.gradient = at::empty_like(weights_), .samples = head.samples, .lr = head.lr};
      connection.receive_bytes(bytes_of(pushed.gradient));
      pushed.present.resize(part_.pieces());
      connection.receive_bytes(bytes_of(pushed.present));
      push(number, head, std::move(pushed));
    } else {
      throw ConnectionLost{"it speaks another protocol"};
    }
  }
}

// With the mutex held.
void ParameterServer::leave(int number, const std::string& why) {
  workers_.erase(number);
  left_ns_ = monotonic_ns();
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
  if (!started_) return false;
  return options_.synchronous ? clock_ >= clock : clock - slowest() <= options_.staleness;
}

int64_t ParameterServer::pull(int number, int64_t clock, Connection& connection, const at::Tensor& to) {
  std::unique_lock lock(mutex_);
  Worker& own = workers_.at(number);
  if (clock >= 0) own.clock = clock;
  own.is_away = false;
  if (options_.synchronous) complete_step();  // a step that this worker leaves out
  changed_.notify_all();
  const int64_t since = monotonic_ns(), between_signs = std::chrono::nanoseconds(kSignOfLife).count();
  int64_t next_sign = since + between_signs;
  while (!may_go(own.clock)) {
    if (stopping_) throw Stopped();
    drop_those_waited_for(since);
    if (monotonic_ns() >= next_sign) {
      lock.unlock();
      connection.send({.kind = MessageKind::kWait});
      next_sign = monotonic_ns() + between_signs;
      lock.lock();
    } else {
      changed_.wait_for(lock, std::chrono::milliseconds(kTick));
    }
  }
  if (failure_) throw Stopped();  // with weights that are half updated
  own.is_away = true;
  own.away_since = monotonic_ns();
  if (options_.synchronous) own.clock = clock_;
  report_.most_staleness = std::max(report_.most_staleness, own.clock - slowest());
  to.copy_(weights_);
  return own.clock;
}

// Ends the connections of workers for which one that waits `since` then has waited as long as its patience is, and
// which have been away for as long. With the mutex held.
void ParameterServer::drop_those_waited_for(int64_t since) {
  const int64_t patience = std::chrono::nanoseconds(bounded(options_.patience)).count();
  const auto has_passed = [&](int64_t from) { return monotonic_ns() - from >= patience; };
  if (!has_passed(since)) return;
  if (!started_) {
    throw CommError("parameter server ", options_.server, ": ", workers_.size(), " of ", options_.workers,
                    " workers are here after ", options_.patience.count(), " ms; start the others, or ask for fewer");
  }
  const int64_t least = slowest();
  for (auto& [number, worker] : workers_) {
    if (!worker.is_away || worker.clock != least || !has_passed(worker.away_since)) continue;
    const std::string why = cat("others have waited for it for ", options_.patience.count(), " ms");
    log_.warning("parameter server ", options_.server, ": worker ", number, " is dropped: ", why);
    worker.is_away = false;
    worker.connection->close_for_all("it was dropped, for " + why);
  }
}

void ParameterServer::push(int number, const MessageHead& head, Pushed pushed) {
  const std::lock_guard lock(mutex_);
  Worker& own = workers_.at(number);
  if (!options_.synchronous) {
    own.clock = head.clock + 1;
    clock_ = std::max(clock_, own.clock);
    if (pushed.samples > 0) update(pushed);
  } else if (head.clock == clock_) {
    pushed_[number] = std::move(pushed);
    own.clock = head.clock + 1;
    complete_step();
  } else {
    ++report_.late;
  }
  changed_.notify_all();
}

// Makes the step under way once all workers of it have pushed. With the mutex held.
void ParameterServer::complete_step() {
  if (pushed_.empty() || !started_ || slowest() < clock_) return;
  if (std::any_of(workers_.begin(), workers_.end(), [this](const auto& each) { return each.second.clock == clock_; })) {
    return;
  }
  Pushed all{
      .gradient = {}, .present = std::string(part_.pieces(), '\0'), .samples = 0, .lr = pushed_.begin()->second.lr};
  for (const auto& [number, pushed] : pushed_) all.samples += pushed.samples;
  comm::LeafFold<at::Tensor> fold;
  const auto plus = [](const at::Tensor& a, const at::Tensor& b) { return b.add_(a); };
  for (auto& [number, pushed] : pushed_) {
    if (pushed.samples == 0) continue;
    fold.push(pushed.gradient.mul_(pushed.samples / all.samples), plus);
    for (size_t i = 0; i < all.present.size(); ++i) all.present[i] = all.present[i] | pushed.present[i];
  }
  pushed_.clear();
  if (all.samples > 0) {
    all.gradient = fold.finish(plus);
    update(all);
  }
  ++clock_;
  changed_.notify_all();
}

// With the mutex held. What it throws ends the server: its weights may be half updated.
void ParameterServer::update(const Pushed& pushed) noexcept {
  if (failure_) return;
  try {
    const c10::AutoGradMode no_grad(false);
    const std::vector<at::Tensor> gradients = part_.pieces_of(pushed.gradient);
    for (size_t i = 0; i < pieces_.size(); ++i) {
      pieces_[i].mutable_grad() = pushed.present[i] != 0 ? gradients[i] : at::Tensor();
    }
    if (!std::isnan(pushed.lr)) optimizer_->set_lr(pushed.lr);
    optimizer_->update({});
    ++report_.updates;
  } catch (...) {
    failure_ = std::current_exception();
    stopping_ = true;
    changed_.notify_all();
  }
}

}  // namespace lockstep::parallel
