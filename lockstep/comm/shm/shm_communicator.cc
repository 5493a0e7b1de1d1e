#include "lockstep/comm/shm/shm_communicator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "lockstep/base/error.h"
#include "lockstep/base/fnv.h"
#include "lockstep/comm/shm/shm_join.h"
#include "lockstep/comm/shm/shm_pull.h"
#include "lockstep/comm/shm/shm_reduce.h"

namespace lockstep::comm {
namespace {

std::vector<int> first_numbers(int count) {
  std::vector<int> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// A hash of the dtype, sizes and strides: two tensors can share memory only if these are equal.
int64_t layout_hash(const at::Tensor& tensor) {
  uint64_t hash = fnv1a(kFnvSeed, static_cast<uint64_t>(tensor.scalar_type()));
  for (const int64_t size : tensor.sizes()) hash = fnv1a(hash, static_cast<uint64_t>(size));
  for (const int64_t stride : tensor.strides()) hash = fnv1a(hash, static_cast<uint64_t>(stride));
  return static_cast<int64_t>(hash);
}

// Leaked, and yet in reach, so that no tool takes it for a mistake.
template <typename Kept>
void keep_forever(Kept kept) {
  static std::mutex mutex;
  static auto* const all = new std::vector<Kept>;
  const std::lock_guard lock(mutex);
  all->push_back(std::move(kept));
}

ShmProtocol protocol_of(ShmCommunicator::Options& options, ShmMemory memory, Pool& pool, Board* board) {
  auto node = std::make_shared<ShmNode>(ShmNode::Options{.self = options.rank,
                                                         .size = options.size,
                                                         .world_ranks = options.world_ranks,
                                                         .warn = options.warn,
                                                         .timeout_name = options.timeout_name},
                                        std::move(memory), pool, board);
  ShmSegment& segment = node->segment();
  return {std::move(node), segment, first_numbers(options.size), options.timeout};
}

}  // namespace

ShmCommunicator::ShmCommunicator(Options options, ShmMemory memory, Pool& pool, Board* board)
    : protocol_(protocol_of(options, std::move(memory), pool, board)), transport_(options.transport) {
  protocol_.node().add(this);
}

ShmCommunicator::ShmCommunicator(ShmProtocol protocol, PoolBlock own_segment)
    : protocol_(std::move(protocol)), own_segment_(std::move(own_segment)), is_group_(true) {
  protocol_.node().add(this);
}

// Other ranks may still read and write the memory of a call that is not complete, its tensors and tables, so that it
// must never serve anything else: it is kept to the end of the process.
ShmCommunicator::~ShmCommunicator() {
  protocol_.node().remove(this);
  for (const auto& message : messages_) {
    message->withdraw();
    if (!message->ended()) keep_forever(message);
  }
  for (const auto& call : collectives_) {
    if (!call->is_complete()) keep_forever(call);
  }
  if (is_group_) protocol_.segment().left.fetch_add(1);
  if (own_segment_) protocol_.node().retire(std::move(own_segment_), static_cast<uint32_t>(size()));
}

bool ShmCommunicator::shares(const at::Tensor& tensor) const {
  return protocol_.node().offset_of(tensor.const_data_ptr(), tensor.nbytes()).has_value();
}

std::vector<at::Tensor> ShmCommunicator::views_of(int root, const std::vector<at::Tensor>& mine) {
  const auto node = protocol_.shared_node();
  const at::Tensor table = at::empty({static_cast<int64_t>(mine.size()), 2}, at::kLong);
  auto* told = table.mutable_data_ptr<int64_t>();  // each tensor's offset in the root's pool or -1, and its layout_hash
  for (size_t i = 0; i < mine.size(); ++i) {
    const auto offset = node->offset_of(mine[i].const_data_ptr(), mine[i].nbytes());
    told[2 * i] = offset ? static_cast<int64_t>(*offset) : -1;
    told[2 * i + 1] = layout_hash(mine[i]);
  }
  broadcast(table, root);
  std::vector<at::Tensor> views;
  for (size_t i = 0; i < mine.size(); ++i) {
    if (told[2 * i] < 0) return {};
    if (told[2 * i + 1] != layout_hash(mine[i])) {
      throw ConfigError("rank ", protocol_.world_rank(rank()), ": tensor ", i, " is a ", mine[i].toString(),
                        " of shape ", mine[i].sizes(), " with strides ", mine[i].strides(), ", and that of rank ",
                        protocol_.world_rank(root), " is not; only equal ones can share memory");
    }
    if (rank() == root) {
      views.push_back(mine[i]);
      continue;
    }
    std::byte* data = protocol_.at(root, static_cast<uint64_t>(told[2 * i]));
    views.push_back(at::from_blob(
        data, mine[i].sizes(), mine[i].strides(), [node](void*) {}, mine[i].options()));
  }
  return views;
}

std::shared_ptr<ShmCollective> ShmCommunicator::collective(const Call& call) {
  if (call.kind != OpKind::kFold && call.kind != OpKind::kAllReduce && call.kind != OpKind::kReduce) {
    return std::make_shared<ShmPull>(protocol_, call);
  }
  if (transport_ != nullptr) return std::make_shared<ShmJoin>(protocol_, call, *transport_);
  return std::make_shared<ShmReduce>(protocol_, call);
}

// A rank that has given up may go on all the same, at another step than the others, so it begins no call any more:
// those that are complete are of one step.
std::shared_ptr<Work> ShmCommunicator::begin(Call call) {
  check_on_cpu(call);
  if (protocol_.node().is_aborted()) protocol_.node().check_given_up(call.label());
  if (call.kind == OpKind::kSend || call.kind == OpKind::kReceive) {
    std::shared_ptr<ShmMessage> message;
    if (call.kind == OpKind::kSend) message = std::make_shared<ShmSend>(protocol_, call);
    if (call.kind == OpKind::kReceive) message = std::make_shared<ShmReceive>(protocol_, call);
    messages_.push_back(message);
    advance_messages();  // the peer may read it while this rank computes
    return message;
  }
  if (protocol_.full()) wait_for_room(call);
  collectives_.push_back(collective(call));
  return collectives_.back();
}

// Waits until the call whose record the next call reuses is complete.
void ShmCommunicator::wait_for_room(const Call& call) {
  const uint64_t oldest = protocol_.next_call() - ShmSegment::kRing;
  const std::string what = call.label();
  const auto timeout = call.timeout.count() > 0 ? call.timeout : protocol_.timeout();
  const ShmNode::Waiting waiting{.what = what,
                                 .ready = [&] { return !protocol_.full(); },
                                 .awaited = [&] { return protocol_.unfinished(oldest); },
                                 .missing = [&] { return protocol_.missing(oldest); },
                                 .timeout = timeout,
                                 .blocked = [&] { return protocol_.blocked_in(oldest); },
                                 .absent = [&] { return protocol_.absent(oldest); }};
  ShmNode& node = protocol_.node();
  const int64_t began_ns = node.running_ns();
  for (std::chrono::nanoseconds time = timeout; !node.wait_until(waiting, time); time = waiting.timeout / 10) {
    if (node.goes_on(waiting, began_ns)) continue;
    throw node.timed_out(waiting, cat("; ", ShmSegment::kRing, " calls are under way"));
  }
}

void ShmCommunicator::advance() {
  bool may_finish = true;
  for (const auto& call : collectives_) {
    call->advance(may_finish);
    may_finish = may_finish && call->finished();
    if (!call->may_be_overtaken()) break;
  }
  while (!collectives_.empty() && collectives_.front()->is_done()) collectives_.pop_front();
  if (!messages_.empty()) advance_messages();
}

void ShmCommunicator::advance_messages() {
  std::vector<ShmMessage::Channel> held_up;  // channels on which a message has no slot yet
  for (const auto& message : messages_) {
    const bool may_match = std::find(held_up.begin(), held_up.end(), message->channel()) == held_up.end();
    message->advance(may_match);
    if (may_match && !message->matched()) held_up.push_back(message->channel());
  }
  std::erase_if(messages_, [](const auto& message) { return message->ended(); });
}

bool ShmCommunicator::needs_polling() const {
  return std::any_of(collectives_.begin(), collectives_.end(), [](const auto& call) { return call->needs_polling(); });
}

// The group's segment lies in the pool of its first member, which tells the others the offset; all ranks map that pool.
std::unique_ptr<Communicator> ShmCommunicator::group(const std::vector<int>& members) {
  const auto node = protocol_.shared_node();
  PoolBlock segment;
  if (!members.empty() && members[0] == rank()) segment = node->make_segment();
  const at::Tensor told = all_gather(at::tensor({static_cast<int64_t>(segment.offset)}, at::kLong));
  if (members.empty()) return nullptr;
  std::vector<int> local_ranks;
  for (const int member : members) local_ranks.push_back(protocol_.local_rank_of(member));
  const auto offset = static_cast<uint64_t>(told.const_data_ptr<int64_t>()[members[0]]);
  auto& there = *reinterpret_cast<ShmSegment*>(node->at(local_ranks[0], offset));
  return std::unique_ptr<Communicator>(
      new ShmCommunicator(ShmProtocol(node, there, std::move(local_ranks), protocol_.timeout()), std::move(segment)));
}

}  // namespace lockstep::comm
