#include "lockstep/launch/node_handshake.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <random>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/remote_error.h"
#include "lockstep/base/text.h"
#include "lockstep/launch/node_messages.h"
#include "lockstep/launch/node_sockets.h"
#include "lockstep/rendezvous/place/tcp_sockets.h"

namespace lockstep::launch {
namespace {

using std::chrono::milliseconds;

constexpr size_t kMostStrangers = 64;  // connections that say nothing
constexpr size_t kMostHello = 4096, kMostAnswer = size_t{16} << 20;
constexpr milliseconds kTellEvery(3000), kRetry(200), kConnect(2000), kSend(2000);

std::string place_of(const NodeHandshake& own) { return cat(own.host, ':', own.port); }
std::string seconds_text(const Stopwatch& watch) { return cat(static_cast<int64_t>(watch.seconds()), " s"); }

// Says a line every few seconds.
class Teller {
 public:
  explicit Teller(const NodeHandshake& own) : own_(own) {}
  void tell(const std::string& line) {
    if (since_.seconds() * 1000 < static_cast<double>(kTellEvery.count())) return;
    since_.restart();
    own_.say(cat(line, " (", seconds_text(whole_), ')'));
  }
  const Stopwatch& whole() const { return whole_; }

 private:
  const NodeHandshake& own_;
  Stopwatch whole_, since_;
};

// Another node at node 0's: first its hello is read, then it waits for the answer.
struct Guest {
  Descriptor socket;
  std::string line;
  std::optional<NodeHello> hello = {};
  int node = NodeHandshake::kAsTheyCome;
};

// Node 0's part.
class Host {
 public:
  Host(const NodeHandshake& own, Descriptor listener) : own_(own), listener_(std::move(listener)), teller_(own) {}

  NodeTable run() {
    const Deadline deadline(own_.timeout);
    try {
      while (count() < own_.nodes) {
        if (deadline.passed()) throw CommError(missing_text());
        teller_.tell(cat("waiting at ", place_of(own_), " for ", missing_nodes()));
        serve_once();
      }
    } catch (const Error& error) {
      answer_all(
          [&](const Guest&) { return NodeAnswer{.table = {}, .error = error.exit_code(), .text = error.what()}; });
      throw;
    }
    return number();
  }

 private:
  int count() const {
    return 1 +
           static_cast<int>(std::count_if(guests_.begin(), guests_.end(), [](const auto& g) { return !!g->hello; }));
  }

  const Guest* guest_of(int node) const {
    const auto found = std::find_if(guests_.begin(), guests_.end(),
                                    [node](const auto& each) { return each->hello && each->hello->node == node; });
    return found == guests_.end() ? nullptr : found->get();
  }

  std::string missing_nodes() const {
    std::vector<int> missing;
    for (int node = 1; node < own_.nodes; ++node) {
      if (guest_of(node) == nullptr) missing.push_back(node);
    }
    const auto unnumbered = std::count_if(guests_.begin(), guests_.end(), [](const auto& guest) {
      return guest->hello && guest->hello->node == NodeHandshake::kAsTheyCome;
    });
    if (unnumbered > 0 || own_.node == NodeHandshake::kAsTheyCome)
      return cat(own_.nodes - count(), " of ", own_.nodes, " nodes");
    return cat(missing.size() == 1 ? "node " : "nodes ", ranges(missing), " of ", own_.nodes);
  }

  std::string missing_text() const {
    return cat("node 0 has waited ", seconds_text(teller_.whole()), " at ", place_of(own_), " for ", missing_nodes(),
               "; start the launcher there, with the same ", own_.master_flag, " and ", own_.nodes_flag, ' ',
               own_.nodes);
  }

  void serve_once() {
    std::vector<pollfd> states = {{.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    for (const auto& guest : guests_) states.push_back({.fd = guest->socket.get(), .events = POLLIN, .revents = 0});
    if (poll(states.data(), states.size(), static_cast<int>(kRetry.count())) <= 0) return;
    for (size_t i = guests_.size(); i-- > 0;) {
      if (states[i + 1].revents != 0 && !hear(*guests_[i])) guests_.erase(guests_.begin() + static_cast<ptrdiff_t>(i));
    }
    if (states[0].revents == 0) return;
    Descriptor socket = rendezvous::accept_on(listener_);
    if (socket) guests_.push_back(std::make_unique<Guest>(Guest{std::move(socket), ""}));
    if (guests_.size() < static_cast<size_t>(own_.nodes) + kMostStrangers) return;
    const auto oldest = std::find_if(guests_.begin(), guests_.end(), [](const auto& guest) { return !guest->hello; });
    if (oldest != guests_.end()) guests_.erase(oldest);
  }

  // False if the guest has gone, or is none of ours.
  bool hear(Guest& guest) {
    std::string more;
    if (guest.hello) return read_line(guest.socket, more, 0);
    const bool is_open = read_line(guest.socket, guest.line, kMostHello);
    if (!is_whole(guest.line)) return is_open;
    const std::string from = rendezvous::peer_address(guest.socket);
    auto hello = NodeHello::decode(guest.line);
    if (!hello) {
      own_.say(cat("warning: ", from, " sent to ", place_of(own_), " what no launcher sends; it is passed over"));
      return false;
    }
    if (hello->job != own_.job) {
      const std::string text =
          cat("the launcher at ", place_of(own_), " is of job ", own_.job, ", and this one of job ", hello->job,
              "; give all nodes one job id, or another port to one of the jobs");
      own_.say(
          cat("warning: a node of job ", hello->job, " (", from, ") came to this job, ", own_.job, "; it is refused"));
      send_line(guest.socket, NodeAnswer{.table = {}, .error = ConfigError::kExitCode, .text = text}.encode(), kSend);
      return false;
    }
    if (hello->address.empty()) hello->address = from;
    check(*hello);
    guest.hello = std::move(hello);
    return true;
  }

  void check(const NodeHello& hello) const {
    const std::string from = hello.address;
    if (hello.nodes != own_.nodes) {
      throw ConfigError(own_.nodes_flag, ' ', hello.nodes, " was given on ", from, " and ", own_.nodes_flag, ' ',
                        own_.nodes, " on node 0 (", own_.host, "); give all nodes the same number");
    }
    const int node = hello.node;
    if (node == NodeHandshake::kAsTheyCome) return;
    if (node >= own_.nodes) {
      throw ConfigError(own_.node_flag, ' ', node, " on ", from, ": with ", own_.nodes, " nodes they go from 0 to ",
                        own_.nodes - 1);
    }
    const Guest* const same = guest_of(node);
    if (node != 0 && same == nullptr) return;
    throw ConfigError("two nodes say ", own_.node_flag, ' ', node, ": ", node == 0 ? own_.host : same->hello->address,
                      " and ", from, "; give each node a number of its own, 0 to ", own_.nodes - 1);
  }

  // The numbers that the nodes ask for, and for the others the free ones in the order in which they came.
  NodeTable number() {
    std::vector<const Guest*> by_number(static_cast<size_t>(own_.nodes));
    for (const auto& guest : guests_) {
      if (guest->hello && guest->hello->node > 0) by_number[static_cast<size_t>(guest->hello->node)] = guest.get();
    }
    size_t next = 1;
    for (const auto& guest : guests_) {
      if (!guest->hello || guest->hello->node > 0) continue;
      while (by_number[next] != nullptr) ++next;
      by_number[next] = guest.get();
    }
    std::vector<int> first(by_number.size() + 1);
    std::vector<std::string> endpoints;
    for (size_t node = 0; node < by_number.size(); ++node) {
      const auto& ports = node == 0 ? own_.ports : by_number[node]->hello->ports;
      const std::string& address =
          node == 0 ? (own_.address.empty() ? own_.host : own_.address) : by_number[node]->hello->address;
      first[node + 1] = first[node] + static_cast<int>(ports.size());
      for (const int port : ports) endpoints.push_back(cat(address, ':', port));
    }
    const auto table_of = [&](size_t node) {
      return NodeTable{static_cast<int>(node), first[node], first.back(), endpoints};
    };
    answer_all([&](const Guest& guest) {
      const auto found = std::find(by_number.begin(), by_number.end(), &guest);
      return NodeAnswer{.table = table_of(static_cast<size_t>(found - by_number.begin())), .text = {}};
    });
    return table_of(0);
  }

  // The port is free before the others know, for their ranks look for rank 0 there.
  template <typename AnswerOf>
  void answer_all(const AnswerOf& answer_of) {
    listener_ = Descriptor();
    for (const auto& guest : guests_) {
      if (guest->hello || is_whole(guest->line)) send_line(guest->socket, answer_of(*guest).encode(), kSend);
    }
  }

  const NodeHandshake& own_;
  Descriptor listener_;
  std::vector<std::unique_ptr<Guest>> guests_;
  Teller teller_;
};

// Why node 0 could not be asked yet.
[[noreturn]] void give_up(const NodeHandshake& own, const Stopwatch& watch, const std::string& why) {
  throw CommError("no launcher answers at ", place_of(own), ", where node 0 was to be: ", why, ", for ",
                  seconds_text(watch), "; start it there, or correct ", own.master_flag);
}

// Another node's part.
NodeTable ask(const NodeHandshake& own) {
  const Deadline deadline(own.timeout);
  Teller teller(own);
  const NodeHello hello{own.nodes, own.node, own.address, own.ports, own.job};
  std::string why = "nothing was tried";
  bool waits = false;  // node 0, for other nodes
  while (!deadline.passed()) {
    const rendezvous::TcpSocket socket =
        rendezvous::connect_to(own.host, own.port, std::min(kConnect, deadline.left_ms()));
    std::string line;
    if (socket.descriptor) {
      send_line(socket.descriptor, hello.encode(), kSend);
      bool is_open = true;
      waits = false;
      while (is_open && !is_whole(line) && !deadline.passed()) {
        pollfd state{.fd = socket.descriptor.get(), .events = POLLIN, .revents = 0};
        if (poll(&state, 1, static_cast<int>(kRetry.count())) == 1)
          is_open = read_line(socket.descriptor, line, kMostAnswer);
        teller.tell(cat("node 0 at ", place_of(own), " waits for other nodes"));
      }
      waits = is_open && !is_whole(line);
    }
    const auto answer = NodeAnswer::decode(line);
    if (answer && answer->error != 0) throw_error(answer->error, answer->text);
    if (answer) return answer->table;
    why = socket.descriptor ? "who listens there does not answer as a launcher" : socket.text;
    teller.tell(cat("waiting for node 0 at ", place_of(own), ": ", why));
    poll(nullptr, 0, static_cast<int>(kRetry.count()));
  }
  if (waits) {
    throw CommError("node 0 at ", place_of(own), " still waits for other nodes after ", seconds_text(teller.whole()),
                    ", and says which; start the launcher on them");
  }
  give_up(own, teller.whole(), why);
}

// Listens at node 0's place. Of two processes that begin to listen at one moment, the kernel may refuse both: then
// nobody is there, and each tries again after a time of its own.
rendezvous::TcpSocket listen_first(const NodeHandshake& own) {
  constexpr int kTries = 8, kLongest = 50;
  std::minstd_rand random(std::random_device{}());
  rendezvous::TcpSocket listener = rendezvous::listen_at(own.host, own.port);
  for (int again = 1; again < kTries && !listener.descriptor && listener.error == EADDRINUSE; ++again) {
    poll(nullptr, 0, std::uniform_int_distribution(0, kLongest)(random));
    const auto other = rendezvous::connect_to(own.host, own.port, kConnect);
    if (other.descriptor || other.error != ECONNREFUSED) break;
    listener = rendezvous::listen_at(own.host, own.port);
  }
  return listener;
}

}  // namespace

NodeTable shake_hands(const NodeHandshake& own) {
  const bool may_listen =
      own.node == 0 || (own.node == NodeHandshake::kAsTheyCome && rendezvous::is_this_machine(own.host));
  if (!may_listen) return ask(own);
  rendezvous::TcpSocket listener = listen_first(own);
  if (listener.descriptor) return Host(own, std::move(listener.descriptor)).run();
  if (listener.error != EADDRINUSE) {
    throw ConfigError(own.master_flag, ' ', place_of(own), ": this machine can't listen there: ", listener.text,
                      "; give an address of node 0's, and a port that it may use");
  }
  if (own.node == NodeHandshake::kAsTheyCome) return ask(own);
  // Another launcher says that it is node 0, or the port is another program's.
  NodeHandshake brief = own;
  brief.timeout = std::min(own.timeout, milliseconds(3000));
  try {
    ask(brief);
  } catch (const CommError&) {
    throw ConfigError(own.master_flag, ' ', place_of(own), ": another program listens there; give a port that is free");
  }
  throw BugError("a node 0 was given another number");
}

}  // namespace lockstep::launch
