#include "lockstep/comm/network/network_communicator.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/base/fnv.h"
#include "lockstep/base/sigpipe.h"
#include "lockstep/comm/flat_fold.h"
#include "lockstep/comm/network/message_exchange.h"
#include "lockstep/comm/network/network_collectives.h"

namespace lockstep::comm {
namespace {

int index_of(const std::vector<int>& members, int rank) {
  return static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin());
}

}  // namespace

NetworkCommunicator::NetworkCommunicator(Network network, std::vector<int> members, std::string name, int number)
    : network_(std::move(network)),
      members_{members, index_of(members, network_.mesh->rank()), number},
      watched_{std::move(name), std::move(members)},
      salt_(fnv1a(kFnvSeed, watched_.name)) {
  network_.timeout = bounded(network_.timeout);
  network_.numbers->take(number);
}

NetworkCommunicator::~NetworkCommunicator() {
  // Calls under way go on to their end, unless an exception is ending this rank.
  if (std::uncaught_exceptions() > 0) network_.mesh->abort();
  for (auto& messenger : messengers_) messenger.thread.join();
  network_.numbers->release(members_.number);
}

NetworkCommunicator::Task NetworkCommunicator::make_task(WatchedCall call, uint64_t salt, std::optional<int> user_tag,
                                                         Act act) {
  const auto wait = std::make_shared<std::atomic<uint64_t>>(0);  // the watch's number; 0 until the task runs
  // The hooks don't hold the watch: a call that is kept for ever would keep it, too, and it could not say farewell.
  NetworkWork::Hooks hooks{.progress = progress_};
  hooks.remind = [watch = std::weak_ptr(network_.watch), wait] {
    const auto alive = watch.lock();
    if (alive && *wait != 0) alive->warn_if_late(*wait);
  };
  hooks.block = [watch = std::weak_ptr(network_.watch), call]() -> std::shared_ptr<void> {
    const auto alive = watch.lock();
    return alive ? alive->block(call) : nullptr;
  };
  hooks.left = [watch = std::weak_ptr(network_.watch)] {
    const auto alive = watch.lock();
    return alive ? alive->longest_left() : std::chrono::nanoseconds(0);
  };
  auto work = std::make_shared<NetworkWork>(call.label, call.timeout, std::move(hooks));
  network_.watch->begin(call);
  auto run = [this, work, wait, salt, user_tag, call = std::move(call), act = std::move(act)] {
    std::exception_ptr failure;
    *wait = network_.watch->enter(call);
    const Patience patience(Deadline(call.timeout), [&] { return network_.watch->left(*wait); });
    try {
      const uint64_t both = salt_ ^ salt;
      Exchange exchange = user_tag ? Exchange(*network_.mesh, members_, both, call.number, patience, *user_tag)
                                   : Exchange(*network_.mesh, members_, both, call.number, patience);
      act(exchange);
    } catch (const MeshError& error) {
      failure = network_.watch->explain(*wait, error);
    } catch (...) {
      failure = std::current_exception();
    }
    network_.watch->leave(*wait);
    work->finish(failure);
  };
  return {work, std::move(run)};
}

std::chrono::milliseconds NetworkCommunicator::timeout_of(const Call& call) const {
  return call.timeout.count() > 0 ? call.timeout : network_.timeout;
}

std::shared_ptr<Work> NetworkCommunicator::start_collective(const Call& call, const Signature& signature, Act act) {
  auto [work, run] = make_task({.group = watched_,
                                .number = ++calls_,
                                .signature = signature,
                                .label = call.label(),
                                .timeout = timeout_of(call)},
                               signature.hash(), /*user_tag=*/{}, std::move(act));
  collectives_.push(std::move(run));
  return work;
}

std::shared_ptr<Work> NetworkCommunicator::begin(Call call) {
  check_on_cpu(call);
  if (call.kind == OpKind::kSend || call.kind == OpKind::kReceive) return start_message(std::move(call));
  const Signature signature = signature_of(call);
  const auto shared = std::make_shared<Call>(std::move(call));
  return start_collective(*shared, signature, [shared](Exchange& exchange) { run_collective(exchange, *shared); });
}

std::shared_ptr<Work> NetworkCommunicator::join(const Call& call, const JoinPlan& plan,
                                                std::vector<at::Tensor> partials) {
  const auto held = std::make_shared<std::vector<at::Tensor>>(std::move(partials));
  return start_collective(call, signature_of(call),
                          [held, plan, op = partial(call.op), wire = call.fold.wire](Exchange& exchange) {
                            if (!wire) return tree_join(exchange, plan, op, *held);
                            std::vector<at::Tensor> narrow;
                            for (const auto& partial : *held)
                              narrow.push_back(at::empty(partial.sizes(), partial.options().dtype(*wire)));
                            for (size_t i = 0; i < narrow.size(); ++i) to_wire((*held)[i], narrow[i]);
                            tree_join(exchange, plan, op, narrow);
                            from_wire(narrow[0], (*held)[0]);
                          });
}

std::shared_ptr<Work> NetworkCommunicator::start_message(Call call) {
  std::erase_if(messengers_, [](Messenger& each) {
    if (!each.work->ended()) return false;
    each.thread.join();
    return true;
  });
  Channel& channel = channels_[{call.kind, call.peer, call.tag}];
  const uint64_t number = ++channel.begun;
  const bool sends = call.kind == OpKind::kSend;
  const int peer = members_.ranks[static_cast<size_t>(call.peer)];
  const std::string end =
      sends ? cat(rank(), '/', call.peer, '/', call.tag) : cat(call.peer, '/', rank(), '/', call.tag);
  const std::string sent = cat(watched_.name, "/send/", end), received = cat(watched_.name, "/receive/", end);
  WatchedCall watched{.number = number,
                      .signature = signature_of(call),
                      .label = call.what.empty() ? message_text(call, peer) : call.what,
                      .timeout = timeout_of(call),
                      .expects = {peer},
                      .tag = call.tag,
                      .channel = sends ? sent : received,
                      .needs = sends ? received : sent};
  std::shared_ptr<NetworkWork> before;  // has the same tag in the mesh
  if (channel.last.size() == Exchange::kMostMessages) {
    before = std::move(channel.last.front());
    channel.last.pop_front();
  }
  const uint64_t salt = static_cast<uint64_t>(call.tag) * 0x9e3779b97f4a7c15;
  const int tag = call.tag;
  auto [work, run] = make_task(std::move(watched), salt, tag, [before, call = std::move(call)](Exchange& exchange) {
    if (before) before->wait_for_end();
    run_message(exchange, call);
  });
  channel.last.push_back(work);
  const SigpipeBlocked blocked;
  messengers_.push_back({work, std::thread(std::move(run))});
  return work;
}

std::unique_ptr<Communicator> NetworkCommunicator::group(const std::vector<int>& members) {
  std::vector<int> ranks;
  std::string name = cat(watched_.name, '.', groups_++);
  for (const int member : members) {
    ranks.push_back(members_.ranks[static_cast<size_t>(member)]);
    name += cat(member == members.front() ? ':' : ',', ranks.back());
  }
  if (!ranks.empty()) network_.watch->announce({name, ranks});
  // None goes on before all have announced themselves.
  const at::Tensor taken = network_.numbers->in_use();
  all_reduce(taken, ReduceOp::kMax);
  const int number = GroupNumbers::first_free(taken);
  if (number < 0) {
    throw ConfigError("a new group of ", size(), " ranks: ", GroupNumbers::kMost,
                      " groups live already; destroy those that are no longer needed");
  }
  if (ranks.empty()) return nullptr;
  network_.mesh->open_group(number, ranks);
  return std::make_unique<NetworkCommunicator>(network_, std::move(ranks), std::move(name), number);
}

void NetworkCommunicator::abort(const std::string& reason) noexcept {
  network_.watch->give_up(reason);
  network_.mesh->abort();
}

}  // namespace lockstep::comm
