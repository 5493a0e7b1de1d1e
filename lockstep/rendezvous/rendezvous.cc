#include "lockstep/rendezvous/rendezvous.h"

#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/descriptor_passing.h"
#include "lockstep/base/error.h"
#include "lockstep/base/host_name.h"
#include "lockstep/base/remote_error.h"
#include "lockstep/comm/quiet_c10d.h"
#include "lockstep/rendezvous/give_up.h"
#include "lockstep/rendezvous/handshake.h"
#include "lockstep/rendezvous/handshake_server.h"
#include "lockstep/rendezvous/place/address.h"
#include "lockstep/rendezvous/store.h"

namespace lockstep::rendezvous {
namespace {

// The key under which local rank 0 of a node publishes its socket.
std::string socket_key(int node) { return cat("socket/", node); }

// The value of that key: "lockstep-<hex> <node> <host name>".
struct SocketName {
  std::string name;
  std::string node;  // this_node() of local rank 0
  std::string host;  // for messages
};

std::string namespace_of(const char* kind) {
  std::error_code ignored;
  return std::filesystem::read_symlink(cat("/proc/self/ns/", kind), ignored).string();
}

// The ranks of a node have one kernel, one network namespace, in which abstract socket names are valid, and one PID
// namespace, for they know each other by their pids.
std::string this_node() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return cat(boot, '/', namespace_of("net"), '/', namespace_of("pid"));
}

std::string random_name() {
  uint64_t id = 0;
  if (getrandom(&id, sizeof id, 0) != sizeof id) throw IoError("getrandom: ", errno_text(errno));
  std::ostringstream name;
  name << "lockstep-" << std::hex << id;
  return name.str();
}

// Nothing if the value can't be one that local rank 0 has written.
std::optional<SocketName> parse_socket_name(const std::string& value) {
  SocketName socket;
  std::istringstream in(value);
  if (!(in >> socket.name >> socket.node >> socket.host)) return std::nullopt;
  return socket.name.rfind("lockstep-", 0) == 0 && socket.name.size() <= 32 ? std::optional(socket) : std::nullopt;
}

// Local rank 0's part: creates the memory and serves the handshake for the ranks of `place`, all of this node.
NodeMemory serve(const Place& place, int node, Store& store, const Deadline& deadline) {
  NodeMemory memory = NodeMemory::create(place.local_size);
  const std::string name = random_name();
  const Descriptor listener = listen_abstract(name);
  store.set(socket_key(node), cat(name, ' ', this_node(), ' ', host_name()), deadline);
  HandshakeServer server(place, memory, listener);
  try {
    server.gather(deadline, [&] { store.check_given_up(deadline); });
  } catch (const Error& error) {
    int told = server.give_up(error);
    if (store.given_up()) {
      store.close_when_all_know(Deadline(kForTheLate), [&] { return told += server.give_up(error); });
    }
    throw;
  }
  server.release();
  return memory;
}

void check_same_node(const Place& place, const SocketName& socket) {
  if (socket.node == this_node()) return;
  throw ConfigError("rank ", place.rank, " runs on ", host_name(), ", rank 0 on ", socket.host,
                    " (or in another network or PID namespace), but they are said to be on one node; set LOCAL_RANK "
                    "and LOCAL_WORLD_SIZE, or use --backend gloo");
}

// check_same_node() for a rank that is connected to rank 0, which is then told, and tells the others.
void check_same_node(const Place& place, const SocketName& socket, const Descriptor& connection) {
  try {
    check_same_node(place, socket);
  } catch (const ConfigError& error) {
    send_packet(connection.get(),
                Notice{.kind = NoticeKind::kGivenUp, .exit_code = error.exit_code(), .reason = error.what()}.encode());
    throw;
  }
}

// Connects to rank 0. A store that an earlier run left behind may name a socket that is gone: then this run's rank 0
// has not come yet.
Descriptor connect_to_server(const Place& place, int node, Store& store, const Deadline& deadline) {
  constexpr int kRetryMs = 20;
  const Stopwatch watch;
  while (const auto value = store.get(socket_key(node), deadline)) {
    if (const auto socket = parse_socket_name(*value)) {
      if (Descriptor connection = connect_abstract(socket->name)) {
        check_same_node(place, *socket, connection);
        return connection;
      }
      if (deadline.passed() || parse_address(place.rendezvous).path.empty()) check_same_node(place, *socket);
    }
    if (deadline.passed()) break;
    poll(nullptr, 0, kRetryMs);
  }
  throw CommError(missing_text(place, {0}, watch.seconds()));
}

void check_user(const Place& place, const Descriptor& connection) {
  const Credentials who = peer_credentials(connection.get());
  if (who.uid == geteuid()) return;
  throw ConfigError("rank ", place.rank, " runs as user ", geteuid(), ", rank 0 (pid ", who.pid, ") as user ", who.uid,
                    "; start all ranks as one user");
}

// The next packet of rank 0, which must be of this kind; nothing if none has come by the deadline.
std::optional<Packet> receive(const Place& place, const Descriptor& connection, NoticeKind kind,
                              const Deadline& deadline) {
  while (!deadline.passed()) {
    if (auto packet = receive_packet(connection.get(), Notice::kMostBytes)) {
      const auto notice = Notice::decode(packet->bytes);
      if (notice && notice->kind == kind) return packet;
      if (notice && notice->kind == NoticeKind::kGivenUp) throw_error(notice->exit_code, notice->reason);
      throw CommError("rank 0 (pid ", peer_credentials(connection.get()).pid, ") died while rank ", place.rank,
                      " met it at ", place.rendezvous, "; see its log");
    }
    pollfd news{connection.get(), POLLIN, 0};
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.left()).count();
    poll(&news, 1, static_cast<int>(std::clamp<int64_t>(ms + 1, 1, 1000)));
  }
  return std::nullopt;
}

NodeMemory take_memory(const Place& place, std::vector<Descriptor> descriptors) {
  if (descriptors.size() != static_cast<size_t>(place.local_size) + 2) {
    throw CommError("rank ", place.rank, ": rank 0 passed ", descriptors.size(), " descriptors where ",
                    place.local_size + 2, " are expected; start all ranks from one build");
  }
  NodeMemory memory;
  memory.board = std::move(descriptors[0]);
  memory.comm = std::move(descriptors[1]);
  for (size_t i = 2; i < descriptors.size(); ++i) memory.pools.push_back(std::move(descriptors[i]));
  return memory;
}

NodeMemory join(const Place& place, Descriptor connection, const Deadline& deadline) {
  const Stopwatch watch;
  check_user(place, connection);
  send_packet(connection.get(), Hello::encode(place));
  auto packet = receive(place, connection, NoticeKind::kMemory, deadline);
  if (!packet) throw CommError(missing_text(place, {0}, watch.seconds()));
  NodeMemory memory = take_memory(place, std::move(packet->descriptors));
  if (receive(place, connection, NoticeKind::kGo, deadline)) return memory;
  const Mapping board(memory.board.get());
  const CommError late(missing_text(place, missing_ranks(*Board::attach(board.data()), place.size), watch.seconds()));
  // Rank 0 forwards this error, so that all ranks name the missing rank, and not this one.
  send_packet(connection.get(),
              Notice{.kind = NoticeKind::kGivenUp, .exit_code = late.exit_code(), .reason = late.what()}.encode());
  throw late;
}

// A rank's description of itself. Rank 0 publishes the table, a line for each rank, or "error 2 …".
struct RankInfo {
  std::string node;  // the same for all ranks of a node
  int local_rank = 0, size = 0;
  std::string host;
};

std::string encode(const RankInfo& info) {
  return cat(info.node, ' ', info.local_rank, ' ', info.size, ' ', info.host, '\n');
}

bool read_rank_info(std::istream& in, RankInfo& info) {
  return bool{in >> info.node >> info.local_rank >> info.size >> info.host};
}

std::string place_key(int rank) { return cat("place/", rank); }
constexpr const char* kTableKey = "table";
constexpr const char* kReadKey = "read";  // the number of ranks that have read it

ConfigError other_size(int rank, const std::string& host, int size, int size_of_rank_0) {
  return ConfigError("rank ", rank, " (", host, ") was started in a world of ", size, " ranks, rank 0 in a world of ",
                     size_of_rank_0, "; start all ranks with the same world size");
}

// Rank 0's part: collects all ranks' descriptions as one text.
std::string collect_rank_infos(const Place& place, Store& store, const Deadline& deadline) {
  const Stopwatch watch;
  std::string all;
  std::vector<int> missing;
  for (int rank = 0; rank < place.size; ++rank) {
    const auto text = store.get(place_key(rank), deadline);
    if (!text) {
      missing.push_back(rank);
      continue;
    }
    RankInfo info;
    std::istringstream in(*text);
    if (!read_rank_info(in, info))
      throw CommError("rank ", rank, " says '", *text, "' of itself; start all ranks from one build");
    if (info.size != place.size) throw other_size(rank, info.host, info.size, place.size);
    all += *text;
  }
  if (!missing.empty()) throw CommError(missing_text(place, missing, watch.seconds()));
  return all;
}

comm::RankTable parse_table(const Place& place, const std::string& text) {
  std::istringstream in(text);
  if (text.starts_with("error ")) {
    int code = 0;
    std::string word, reason;
    in >> word >> code;
    std::getline(in >> std::ws, reason);
    throw_error(code, reason);
  }
  comm::RankTable table;
  std::map<std::string, int> nodes;
  for (RankInfo info; read_rank_info(in, info);) {
    if (info.size != place.size) throw other_size(place.rank, host_name(), place.size, info.size);
    const int node = nodes.emplace(info.node, static_cast<int>(nodes.size())).first->second;
    table.push_back({node, info.local_rank, info.host});
  }
  return table;
}

// Checks that the ranks of each node have the local ranks 0, 1, … once each.
void check_nodes(const comm::RankTable& table) {
  for (int node = 0; node < comm::node_count(table); ++node) {
    const std::vector<int> ranks = comm::ranks_of_node(table, node);
    const auto members =
        std::count_if(table.begin(), table.end(), [node](const comm::RankPlace& p) { return p.node == node; });
    if (std::count(ranks.begin(), ranks.end(), -1) == 0 && std::ssize(ranks) == members) continue;
    const int first = *std::find_if(ranks.begin(), ranks.end(), [](int rank) { return rank >= 0; });
    throw ConfigError("the local ranks on node ", table[static_cast<size_t>(first)].host,
                      " are not 0, 1, … each once; look at LOCAL_RANK there, and whether its ranks have one PID "
                      "namespace");
  }
}

// Rank 0's part: publishes the table or the error. After an error it waits until the other ranks have read it, for the
// store ends with rank 0.
void publish_table(const Place& place, Store& store, const Deadline& deadline) {
  constexpr std::chrono::seconds kGrace{2};
  std::string text;
  try {
    text = collect_rank_infos(place, store, deadline);
    check_nodes(parse_table(place, text));
  } catch (const Error& error) {
    if (store.given_up()) {
      store.close_when_all_know(Deadline(kForTheLate));
      throw;
    }
    text = cat("error ", error.exit_code(), ' ', error.what());
  }
  store.set(kTableKey, text, Deadline(kGrace / 2));
  if (!text.starts_with("error ")) return;
  int64_t others = 0;
  for (int rank = 1; rank < place.size; ++rank)
    others += store.get(place_key(rank), Deadline(std::chrono::seconds(0))) ? 1 : 0;
  const Deadline end(kGrace);
  while (!end.passed() && store.count(kReadKey, 0, end) < others) poll(nullptr, 0, 10);
}

}  // namespace

comm::RankTable exchange_places(const Place& place, Store& store, const Deadline& deadline) {
  if (store.count(cat("here/", place.rank), 1, deadline) > 1) {
    throw ConfigError(
        "two processes say that they are rank ", place.rank, " of ", place.size,
        "; give each its own rank (or, where ranks meet in a file: an earlier run left it; name a new one)");
  }
  const std::string node = place.node >= 0 ? cat("node", place.node, '/', namespace_of("pid")) : this_node();
  store.set(place_key(place.rank), encode({node, place.local_rank, place.size, host_name()}), deadline);
  if (place.rank == 0) publish_table(place, store, deadline);
  const Stopwatch watch;
  constexpr std::chrono::seconds kGrace{2};  // the time in which rank 0 says who is missing
  const auto text = store.get(kTableKey, Deadline(std::max(deadline.left(), std::chrono::nanoseconds(0)) + kGrace));
  if (!text) throw CommError(missing_text(place, {0}, watch.seconds()));
  if (place.rank != 0) store.count(kReadKey, 1, Deadline(kGrace));
  return parse_table(place, *text);
}

NodeMemory share_node_memory(const Place& place, const comm::RankTable& table, Store& store, const Deadline& deadline) {
  const int node = table.at(static_cast<size_t>(place.rank)).node;
  Place local = place;
  local.rank = place.local_rank;
  local.size = local.local_size = static_cast<int>(comm::ranks_of_node(table, node).size());
  if (local.size == 1) return NodeMemory::create(1);
  return local.rank == 0 ? serve(local, node, store, deadline)
                         : join(local, connect_to_server(local, node, store, deadline), deadline);
}

NodeMemory share_node_memory(const Place& place, std::chrono::milliseconds timeout) {
  const comm::QuietC10d quiet;
  const Deadline deadline(timeout);
  constexpr int kNode = 0;
  if (place.rank == 0) {
    Store store(place, deadline);
    NodeMemory memory = serve(place, kNode, store, deadline);
    store.close();  // the other ranks have closed it already
    return memory;
  }
  Descriptor connection;
  {
    Store store(place, deadline);
    connection = connect_to_server(place, kNode, store, deadline);
    store.close();
  }
  return join(place, std::move(connection), deadline);
}

}  // namespace lockstep::rendezvous
