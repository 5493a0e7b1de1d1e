#include "lockstep/world/session.h"

#include <algorithm>
#include <numeric>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/network/interfaces.h"
#include "lockstep/comm/network/loopback_mesh.h"
#include "lockstep/rendezvous/rendezvous.h"

namespace lockstep {
namespace {

constexpr const char* kWorld = "world";

comm::WatchGroup all_of(const Session& session) {
  comm::WatchGroup all{kWorld, std::vector<int>(session.table.size())};
  std::iota(all.ranks.begin(), all.ranks.end(), 0);
  return all;
}

}  // namespace

std::unique_ptr<Session> open_session(const rendezvous::Place& place, const Deadline& deadline) {
  auto session = std::unique_ptr<Session>(new Session{{}, rendezvous::Store(place, deadline), {}, place.rank});
  session->table = rendezvous::exchange_places(place, session->store, deadline);
  return session;
}

std::string named_interfaces(const std::string& option) {
  const std::string names = option.empty() ? env("GLOO_SOCKET_IFNAME").value_or("") : option;
  if (!names.empty()) comm::choose_interfaces(names, "");
  return names;
}

std::string rendezvous_host(const rendezvous::Place& place) {
  const rendezvous::Address address = rendezvous::parse_address(place.rendezvous);
  return address.host.empty() ? "localhost" : address.host;
}

std::string interfaces_for(const Session& session, const rendezvous::Place& place, const std::string& option) {
  const std::string named = named_interfaces(option), host = rendezvous_host(place);
  const bool by_file = rendezvous::parse_address(place.rendezvous).host.empty();
  if (!named.empty() || comm::node_count(session.table) == 1 || (rendezvous::names_loopback(host) && !by_file))
    return named;
  if (!comm::choose_interfaces("", host)[0].loopback) return "";
  for (const auto& interface : comm::network_interfaces()) {
    if (!interface.loopback) return interface.name;
  }
  return "";
}

comm::Network connect_network(const Session& session, const std::function<std::unique_ptr<comm::Mesh>()>& make_mesh,
                              const WorldOptions& options, Board* board) {
  const comm::QuietC10d quiet;
  const Deadline deadline(options.timeout);
  const auto notes = session.store.connect("notes/", deadline);
  {
    // Announced before the mesh connects, so that every rank that is connected to this one finds these notes.
    comm::Bulletin bulletin(notes, session.rank);
    bulletin.announce();
    bulletin.announce(all_of(session));
  }
  const std::shared_ptr<comm::Mesh> mesh = std::make_shared<comm::LoopbackMesh>(make_mesh());
  const auto log = Logger::from_environment(cat("rank ", session.rank));
  comm::Watch::Options watch{.rank = session.rank, .ranks = session.table, .board = board};
  watch.timeout_name = options.timeout_name;
  // Several rounds before the timeout, so that who makes progress is known by then.
  watch.period = std::max(std::min(options.timeout / 8, options.heartbeat), std::chrono::milliseconds(10));
  watch.warn = [log](const std::string& text) { log.warning(text); };
  watch.stop_waits = [weak = std::weak_ptr<comm::Mesh>(mesh)] {
    if (const auto alive = weak.lock()) alive->abort();
  };
  watch.check = [weak = std::weak_ptr<comm::Mesh>(mesh)] {
    if (const auto alive = weak.lock()) alive->check();
  };
  return {mesh, std::make_shared<comm::Watch>(std::move(watch), std::make_unique<comm::Bulletin>(notes, session.rank)),
          options.timeout};
}

std::unique_ptr<comm::NetworkCommunicator> world_group(const comm::Network& network, const Session& session) {
  comm::WatchGroup all = all_of(session);
  return std::make_unique<comm::NetworkCommunicator>(network, std::move(all.ranks), all.name);
}

}  // namespace lockstep
