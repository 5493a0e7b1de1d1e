#include "lockstep/comm/meeting/session.h"

#include <numeric>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/meeting/rendezvous.h"
#include "lockstep/comm/network/gloo_mesh.h"
#include "lockstep/comm/network/interfaces.h"
#include "lockstep/comm/network/loopback_mesh.h"
#include "lockstep/comm/plugins/mpi_mesh.h"

namespace lockstep::comm {
namespace {

constexpr const char* kWorld = "world";

WatchGroup all_of(const Session& session) {
  WatchGroup all{kWorld, std::vector<int>(session.table.size())};
  std::iota(all.ranks.begin(), all.ranks.end(), 0);
  return all;
}

std::string meeting_host(const Place& place) {
  const Meeting meeting = parse_meeting(place.meeting);
  return meeting.host.empty() ? "localhost" : meeting.host;
}

// The interfaces that are named, else, where the way to the meeting place is this machine's loopback though ranks are
// on other nodes, the first that leads out. Empty: whichever leads to the meeting place.
std::string interfaces_for(const Session& session, const Place& place, const std::string& option) {
  const std::string named = named_interfaces(option), host = meeting_host(place);
  const bool by_file = parse_meeting(place.meeting).host.empty();
  if (!named.empty() || node_count(session.table) == 1 || (names_loopback(host) && !by_file)) return named;
  if (!choose_interfaces("", host)[0].loopback) return "";
  for (const auto& interface : network_interfaces()) {
    if (!interface.loopback) return interface.name;
  }
  return "";
}

std::unique_ptr<Mesh> make_mesh(const Session& session, const Place& place, const NetworkOptions& options,
                                const Deadline& deadline) {
  const int size = static_cast<int>(session.table.size());
  if (options.backend == "mpi") {
    const auto make = plugin_function<decltype(lockstep_make_mpi_mesh)>(kMpiPlugin, "lockstep_make_mpi_mesh");
    return std::unique_ptr<Mesh>(make({.rank = session.rank, .size = size}));
  }
  return make_gloo_mesh({.rank = session.rank,
                         .size = size,
                         .interfaces = interfaces_for(session, place, options.interfaces),
                         .towards = meeting_host(place),
                         .timeout = options.timeout},
                        session.store.connect("gloo/", deadline));
}

}  // namespace

std::unique_ptr<Session> open_session(const Place& place, const Deadline& deadline) {
  auto session = std::unique_ptr<Session>(new Session{{}, MeetingStore(place, deadline), {}, place.rank});
  session->table = exchange_places(place, session->store, deadline);
  return session;
}

std::string named_interfaces(const std::string& option) {
  const std::string names = option.empty() ? env("GLOO_SOCKET_IFNAME").value_or("") : option;
  if (!names.empty()) choose_interfaces(names, "");
  return names;
}

Network connect_network(const Session& session, const Place& place, const NetworkOptions& options) {
  const QuietC10d quiet;
  const Deadline deadline(options.timeout);
  const auto notes = session.store.connect("notes/", deadline);
  {
    // Before the mesh is there: whoever reads these notes has a connection to this rank.
    Bulletin bulletin(notes, session.rank);
    bulletin.announce();
    bulletin.announce(all_of(session));
  }
  const std::shared_ptr<Mesh> mesh = std::make_shared<LoopbackMesh>(make_mesh(session, place, options, deadline));
  const auto log = Logger::from_environment(cat("rank ", session.rank));
  Watch::Options watch{.rank = session.rank, .ranks = session.table, .board = options.board};
  watch.warn = [log](const std::string& text) { log.warning(text); };
  watch.stop_waits = [weak = std::weak_ptr<Mesh>(mesh)] {
    if (const auto alive = weak.lock()) alive->abort();
  };
  return {mesh, std::make_shared<Watch>(std::move(watch), std::make_unique<Bulletin>(notes, session.rank)),
          options.timeout};
}

std::unique_ptr<NetworkCommunicator> world_of(const Network& network, const Session& session) {
  WatchGroup all = all_of(session);
  return std::make_unique<NetworkCommunicator>(network, std::move(all.ranks), all.name);
}

}  // namespace lockstep::comm
