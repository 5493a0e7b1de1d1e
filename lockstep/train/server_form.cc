#include "lockstep/train/server_form.h"

#include <algorithm>

#include "lockstep/comm/text_exchange.h"
#include "lockstep/parallel/push_hook.h"
#include "lockstep/parallel/shard_plan.h"

namespace lockstep::train {
namespace {

std::vector<int> owners_of(const Parts& parts) {
  return ServerForm::owners(*parts.optimizer, parts.options, parts.world->size());
}

// The ranks that keep weights, in order.
std::vector<int> servers_of(std::vector<int> owners) {
  std::sort(owners.begin(), owners.end());
  owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
  return owners;
}

}  // namespace

std::vector<int> ServerForm::owners(const optim::AnyOptimizer& optimizer, const TrainOptions& options, int ranks) {
  std::vector<int64_t> elements;
  for (const at::Tensor& each : optimizer.all_parameters()) {
    elements.push_back(each.requires_grad() ? each.numel() : 0);  // frozen weights are no work
  }
  return parallel::plan_servers(elements, options.parallel.servers, ranks);
}

ServerForm::ServerForm(const Parts& parts, const Logger& log)
    : DdpForm(parts, log, parallel::push_hook(parts.optimizer->all_parameters(), owners_of(parts))) {
  const std::vector<int> servers = servers_of(owners_of(parts_));
  const auto own = std::find(servers.begin(), servers.end(), parts_.world->rank());
  parts_.world->self().role.set(own == servers.end() ? "worker"
                                                     : cat("server ", own - servers.begin(), " of ", servers.size()));
}

std::string ServerForm::first_not_finite() const {
  const std::string own = first_not_finite_of(*parts_.model.module);
  const std::vector<std::string> all = comm::gather_texts(parts_.world->communicator(), own);
  for (const auto& weight : parts_.model.module->named_parameters()) {
    if (std::find(all.begin(), all.end(), weight.key()) != all.end()) return weight.key();
  }
  return "a weight";
}

std::string ServerForm::text(const Parts& parts) {
  const std::vector<int> servers = servers_of(owners_of(parts));
  std::string ranks;
  for (const int rank : servers) ranks += cat(ranks.empty() ? "" : ", ", rank);
  return cat(servers.size(), servers.size() == 1 ? " parameter server (rank " : " parameter servers (ranks ", ranks,
             "), to which ", parts.world->size(), parts.world->size() == 1 ? " rank pushes" : " ranks push",
             " synchronously");
}

}  // namespace lockstep::train
