#include "lockstep/parallel/server/served_parameters.h"

#include <ATen/ops/empty.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/rendezvous/place/address.h"
#include "lockstep/rendezvous/place/tcp_sockets.h"

namespace lockstep::parallel {
namespace {

constexpr std::chrono::milliseconds kRetry{100};

}  // namespace

ServedParameters::ServedParameters(std::vector<at::Tensor> parameters, std::vector<std::string> servers,
                                   const ServedOptions& options)
    : parameters_(std::move(parameters)), worker_(options.worker), patience_(options.patience) {
  if (servers.empty()) throw ConfigError("parameter servers: none is named");
  if (worker_ < 0) throw ConfigError("parameter servers: a worker ", worker_, "; their numbers begin with 0");
  const auto count = static_cast<int>(servers.size());
  for (int i = 0; i < count; ++i) {
    ServedPart part(parameters_, i, count);
    const at::Tensor flat = at::empty({part.elements()}, at::kFloat);
    servers_.push_back({std::move(servers[static_cast<size_t>(i)]), std::move(part), flat, nullptr});
  }
  for (Server& server : servers_) connect(server, options);
  for (Server& server : servers_) enter(server);
}

ServedParameters::~ServedParameters() {
  for (const Server& server : servers_) {
    try {
      if (server.connection) server.connection->send({.kind = MessageKind::kBye});
    } catch (...) {  // it is gone, which harms nobody now
    }
  }
}

// Calls something that talks to the server; what goes wrong names it, and is the end of all connections.
template <typename Call>
void ServedParameters::with(Server& server, const char* doing, const Call& call) {
  const auto number = &server - servers_.data();
  if (!broken_.empty()) throw CommError("parameter servers: make ServedParameters anew after an error: ", broken_);
  if (server.connection) server.connection->touch();
  try {
    try {
      call();
    } catch (const ConnectionLost& lost) {
      const auto last_words = server.connection->last_words();
      throw CommError("parameter server ", number, " of ", servers_.size(), " (", server.address,
                      ") is gone while worker ", worker_, ' ', doing, ": ", last_words.value_or(lost.why));
    }
  } catch (const std::exception& error) {
    broken_ = error.what();
    for (const Server& each : servers_) {
      if (each.connection) each.connection->close_for_all();
    }
    throw;
  }
}

void ServedParameters::connect(Server& server, const ServedOptions& options) {
  const auto number = &server - servers_.data();
  const rendezvous::Address address = rendezvous::parse_address("tcp://" + server.address);
  const Deadline deadline(options.patience);
  rendezvous::TcpSocket socket;
  for (;;) {
    socket = rendezvous::connect_to(address.host, address.port, deadline.left_ms());
    if (socket.descriptor) break;
    if (deadline.passed()) {
      throw CommError("parameter server ", number, " of ", servers_.size(), " (", server.address,
                      ") can't be reached: ", socket.text, "; is it started there?");
    }
    poll(nullptr, 0, static_cast<int>(std::min(kRetry, deadline.left_ms()).count()));
  }
  server.connection = std::make_unique<Connection>(std::move(socket.descriptor), [this, &server] {
    if (monotonic_ns() - server.connection->moved_ns() < std::chrono::nanoseconds(patience_).count()) return;
    throw CommError("parameter server ", &server - servers_.data(), " of ", servers_.size(), " (", server.address,
                    ") has said nothing to worker ", worker_, " for ", patience_.count(), " ms");
  });
  with(server, "connected", [&] {
    server.connection->send({.kind = MessageKind::kLook});
    const MessageHead answer = server.connection->receive();
    if (answer.kind != MessageKind::kOptions) throw ConnectionLost{"it speaks another protocol"};
    const std::string how = server.connection->receive_text(answer);
    if (number == 0) how_ = how;
    if (how == how_) return;
    throw ConfigError("parameter server ", number, " of ", servers_.size(), " (", server.address, ") has ", how,
                      ", and the first one ", how_, "; give all of them the same options");
  });
}

void ServedParameters::enter(Server& server) {
  const auto number = &server - servers_.data();
  with(server, "connected", [&] {
    const std::string text = server.part.text();
    server.connection->send({.kind = MessageKind::kHello, .clock = worker_}, bytes_of(text));
    const MessageHead answer = server.connection->receive();
    if (answer.kind == MessageKind::kWelcome) return;
    if (answer.kind != MessageKind::kRefused) throw ConnectionLost{"it speaks another protocol"};
    throw ConfigError("parameter server ", number, " of ", servers_.size(), " (", server.address,
                      "): ", server.connection->receive_text(answer));
  });
}

int64_t ServedParameters::pull() {
  // Of a worker that has just come, servers may be at different steps: then all give the latest.
  std::vector<int64_t> clocks(servers_.size(), -1);
  int64_t latest = clock_;
  do {
    for (size_t i = 0; i < servers_.size(); ++i) {
      if (clocks[i] == latest && latest >= 0) continue;
      with(servers_[i], "pulled", [&] { servers_[i].connection->send({.kind = MessageKind::kPull, .clock = latest}); });
    }
    for (size_t i = 0; i < servers_.size(); ++i) {
      if (clocks[i] == latest && latest >= 0) continue;
      with(servers_[i], "pulled", [&] {
        Connection& connection = *servers_[i].connection;
        MessageHead head = connection.receive();
        while (head.kind == MessageKind::kWait) head = connection.receive();
        if (head.kind == MessageKind::kRefused) throw ConnectionLost{connection.receive_text(head)};
        if (head.kind != MessageKind::kWeights || head.bytes != servers_[i].flat.nbytes()) {
          throw ConnectionLost{"it speaks another protocol"};
        }
        if (head.clock < latest) throw ConnectionLost{"it speaks another protocol"};
        connection.receive_bytes(bytes_of(servers_[i].flat));
        clocks[i] = head.clock;
      });
    }
    latest = *std::max_element(clocks.begin(), clocks.end());
  } while (std::any_of(clocks.begin(), clocks.end(), [&](int64_t clock) { return clock != latest; }));
  for (const Server& server : servers_) server.part.give(parameters_, server.flat);
  for (const at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  clock_ = latest;
  may_push_ = true;
  return clock_;
}

void ServedParameters::push(int64_t samples, double lr) {
  if (!may_push_) throw ConfigError("parameter servers: a push without a pull before it, whose weights it would be of");
  if (samples < 0) throw ConfigError("parameter servers: a push of ", samples, " samples");
  std::vector<std::string> present;
  for (const Server& server : servers_) present.push_back(server.part.take_gradients(parameters_, server.flat));
  for (size_t i = 0; i < servers_.size(); ++i) {
    with(servers_[i], "pushed", [&] {
      servers_[i].connection->send(
          {.kind = MessageKind::kPush, .clock = clock_, .samples = static_cast<double>(samples), .lr = lr},
          bytes_of(servers_[i].flat), bytes_of(present[i]));
    });
  }
  may_push_ = false;
  ++clock_;
}

uint64_t ServedParameters::bytes() const {
  uint64_t sum = 0;
  for (const Server& server : servers_) sum += server.connection->bytes();
  return sum;
}

}  // namespace lockstep::parallel
