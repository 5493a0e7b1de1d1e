#include "lockstep/comm/hierarchy/hierarchical_communicator.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "lockstep/comm/network/watched_work.h"

namespace lockstep::comm {
namespace {

ShmCommunicator::Options on_node(ShmCommunicator::Options options, const RankTable& table, int rank,
                                 NodeTransport* transport) {
  const RankPlace& place = table.at(static_cast<size_t>(rank));
  options.rank = place.local_rank;
  options.size = static_cast<int>(ranks_of_node(table, place.node).size());
  options.transport = transport;
  return options;
}

}  // namespace

HierarchicalCommunicator::HierarchicalCommunicator(std::unique_ptr<NetworkCommunicator> world, Network network,
                                                   const RankTable& table, Node node)
    : watch_(network.watch),
      calls_{"calls", std::vector<int>(table.size())},
      timeout_(network.timeout),
      world_(std::move(world)),
      transport_(std::move(network), table, world_->rank()),
      node_(on_node(std::move(node.options), table, world_->rank(), &transport_), node.memory, node.pool, node.board) {
  std::iota(calls_.ranks.begin(), calls_.ranks.end(), 0);
  watch_->announce(calls_);
  // A wait on the network makes progress on the node's folds, for other ranks may wait for these.
  world_->set_progress([this] { node_.progress(); });
}

std::string HierarchicalCommunicator::describe() const {
  return cat(world_->describe(), " on several nodes; ", node_.describe(), " on this one; ", transport_.rails(),
             transport_.rails() == 1 ? " rail" : " rails");
}

// A broadcast as an all_reduce: the bitwise or of the ranks' bytes, where all ranks but the root bring zeros. It moves
// twice the volume of one copy to each node, but spreads it over all links between the nodes; a flat broadcast sends a
// copy to each rank.
std::shared_ptr<Work> HierarchicalCommunicator::broadcast(const Call& call) {
  auto* data = call.output.data_ptr();
  if (rank() != call.peer) std::memset(data, 0, call.output.nbytes());
  const at::Tensor bytes = at::from_blob(
      data, {static_cast<int64_t>(call.output.nbytes())}, [held = call.output](void*) {}, at::kByte);
  Call all = calls::all_reduce(bytes, ReduceOp::kBitOr);
  all.what = call.label();
  all.timeout = call.timeout;
  return node_.start(std::move(all));
}

std::shared_ptr<Work> HierarchicalCommunicator::begin(Call call) {
  if (call.kind == OpKind::kSend || call.kind == OpKind::kReceive) return carry_out(std::move(call));
  WatchedCall watched{.group = calls_,
                      .number = ++begun_,
                      .signature = signature_of(call),
                      .label = call.label(),
                      .timeout = call.timeout.count() > 0 ? call.timeout : timeout_};
  watch_->begin(watched);
  watch_->note(watched);
  return std::make_shared<WatchedWork>(carry_out(std::move(call)), watch_, std::move(watched),
                                       [this](const std::string& difference) { node_.tell_desync(difference); });
}

std::shared_ptr<Work> HierarchicalCommunicator::carry_out(Call call) {
  constexpr size_t kLarge = size_t{256} << 10;
  if (call.kind == OpKind::kFold || call.kind == OpKind::kAllReduce) return node_.start(std::move(call));
  if (call.kind == OpKind::kBroadcast && call.output.nbytes() >= kLarge) return broadcast(call);
  return world_->start(std::move(call));
}

std::unique_ptr<Communicator> HierarchicalCommunicator::group(const std::vector<int>& members) {
  return world_->make_group(members);
}

void HierarchicalCommunicator::abort(const std::string& reason) noexcept {
  node_.abort(reason);
  world_->abort(reason);
}

}  // namespace lockstep::comm
