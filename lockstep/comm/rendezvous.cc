#include "lockstep/comm/rendezvous.h"

#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/descriptor_passing.h"
#include "lockstep/comm/handshake.h"
#include "lockstep/comm/meeting_address.h"
#include "lockstep/comm/meeting_store.h"
#include "lockstep/comm/reception.h"
#include "lockstep/comm/remote_error.h"

namespace lockstep::comm {
namespace {

constexpr const char* kSocketKey = "socket";

// Where rank 0 is to be found, as the store has it: "lockstep-<hex> <node> <host name>".
struct SocketName {
  std::string name;
  std::string node;  // abstract names are known on one kernel, within one network namespace
  std::string host;  // for people
};

std::string this_node() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::error_code ignored;
  return cat(boot, '/', std::filesystem::read_symlink("/proc/self/ns/net", ignored).string());
}

std::string this_host() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "?";
}

std::string random_name() {
  uint64_t id = 0;
  if (getrandom(&id, sizeof id, 0) != sizeof id) throw IoError("getrandom: ", errno_text(errno));
  std::ostringstream name;
  name << "lockstep-" << std::hex << id;
  return name.str();
}

// Nothing if rank 0 can't have written it.
std::optional<SocketName> parse_socket_name(const std::string& value) {
  SocketName socket;
  std::istringstream in(value);
  if (!(in >> socket.name >> socket.node >> socket.host)) return std::nullopt;
  return socket.name.rfind("lockstep-", 0) == 0 && socket.name.size() <= 32 ? std::optional(socket) : std::nullopt;
}

NodeMemory host(const Place& place, const Deadline& deadline) {
  MeetingStore store(place, deadline);
  NodeMemory memory = NodeMemory::create(place.local_size);
  const std::string name = random_name();
  const Descriptor listener = listen_abstract(name);
  store.set(kSocketKey, cat(name, ' ', this_node(), ' ', this_host()), deadline);
  Reception reception(place, memory, listener);
  try {
    reception.gather(deadline);
    store.close();  // whoever has come has left it already
  } catch (const Error& error) {
    reception.give_up(error);
    throw;
  }
  reception.release();
  return memory;
}

void check_same_node(const Place& place, const SocketName& socket) {
  if (socket.node == this_node()) return;
  throw ConfigError("rank ", place.rank, " runs on ", this_host(), ", rank 0 on ", socket.host,
                    " (or in another network namespace); ranks on several nodes need a network backend, which this "
                    "build does not have yet");
}

// Connects to rank 0. A store that an earlier run left behind may name a socket that is no more: then rank 0 is still
// to come.
Descriptor reach_host(const Place& place, const Deadline& deadline) {
  constexpr int kRetryMs = 20;
  const Stopwatch watch;
  MeetingStore store(place, deadline);
  while (const auto value = store.get(kSocketKey, deadline)) {
    if (const auto socket = parse_socket_name(*value)) {
      if (Descriptor connection = connect_abstract(socket->name)) {
        store.close();
        return connection;
      }
      if (deadline.passed() || parse_meeting(place.meeting).path.empty()) check_same_node(place, *socket);
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

// Rank 0's next packet, of this kind; none if it has not come until the deadline.
std::optional<Packet> hear(const Place& place, const Descriptor& connection, NoticeKind kind,
                           const Deadline& deadline) {
  while (!deadline.passed()) {
    if (auto packet = receive_packet(connection.get(), Notice::kMostBytes)) {
      const auto notice = Notice::decode(packet->bytes);
      if (notice && notice->kind == kind) return packet;
      if (notice && notice->kind == NoticeKind::kGivenUp) throw_error(notice->exit_code, notice->reason);
      throw CommError("rank 0 (pid ", peer_credentials(connection.get()).pid, ") died while rank ", place.rank,
                      " met it at ", place.meeting, "; see its log");
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

NodeMemory join(const Place& place, const Deadline& deadline) {
  const Stopwatch watch;
  const Descriptor connection = reach_host(place, deadline);
  check_user(place, connection);
  send_packet(connection.get(), Hello::encode(place));
  auto packet = hear(place, connection, NoticeKind::kMemory, deadline);
  if (!packet) throw CommError(missing_text(place, {0}, watch.seconds()));
  NodeMemory memory = take_memory(place, std::move(packet->descriptors));
  if (hear(place, connection, NoticeKind::kGo, deadline)) return memory;
  const Mapping board(memory.board.get());
  const CommError late(missing_text(place, missing_ranks(*Board::attach(board.data()), place.size), watch.seconds()));
  // Rank 0 passes it on, so that all tell of the rank that is missing and none of this one.
  send_packet(connection.get(),
              Notice{.kind = NoticeKind::kGivenUp, .exit_code = late.exit_code(), .reason = late.what()}.encode());
  throw late;
}

}  // namespace

NodeMemory meet(const Place& place, std::chrono::milliseconds timeout) {
  const QuietC10d quiet;
  const Deadline deadline(timeout);
  return place.rank == 0 ? host(place, deadline) : join(place, deadline);
}

}  // namespace lockstep::comm
