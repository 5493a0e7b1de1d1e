#include "lockstep/parallel/mixed_networks.h"

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <atomic>
#include <unordered_set>
#include <vector>

#include "lockstep/amp/autocast.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/master_weights.h"
#include "lockstep/parallel/state_broadcast.h"

namespace lockstep::parallel {
namespace {

// In the order of the network's parameters, which is the same on all ranks.
std::vector<const amp::MixedPrecision*> all_of(const torch::nn::Module& network) {
  std::vector<const amp::MixedPrecision*> all;
  for (const auto& parameter : network.parameters()) {
    const auto* mixed = amp::MixedPrecision::find_for(parameter);
    if (mixed != nullptr && std::find(all.begin(), all.end(), mixed) == all.end()) all.push_back(mixed);
  }
  return all;
}

// Whether a loss's graph has a cast, such as autocast's of a weight.
bool has_casts(const at::Tensor& loss) {
  std::vector<const torch::autograd::Node*> left{loss.grad_fn().get()};
  std::unordered_set<const torch::autograd::Node*> seen;
  while (!left.empty()) {
    const auto* node = left.back();
    left.pop_back();
    if (node == nullptr || !seen.insert(node).second) continue;
    if (node->name() == "ToCopyBackward0") return true;
    for (const auto& edge : node->next_edges()) left.push_back(edge.function.get());
  }
  return false;
}

}  // namespace

void broadcast_masters(const torch::nn::Module& network, comm::Communicator& comm, int root) {
  const auto parameters = network.parameters();
  std::vector<at::Tensor> masters = optim::MasterWeights::kept_of(parameters);
  for (const auto* mixed : all_of(network)) {
    for (const auto& master : mixed->masters_of(parameters)) masters.push_back(master);
  }
  std::unordered_set<const c10::TensorImpl*> sent;  // both know those of Lockstep's optimizers in mixed precision
  for (const auto& master : masters) {
    if (sent.insert(master.unsafeGetTensorImpl()).second) broadcast_tensor(master, comm, root);
  }
}

uint64_t next_run() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

void check_given(const torch::nn::Module& network, const amp::MixedPrecision& mixed, int64_t step) {
  const auto all = all_of(network);
  if (std::find(all.begin(), all.end(), &mixed) != all.end()) return;
  throw ConfigError("step ", step,
                    ": the network was not given to this MixedPrecision; make one MixedPrecision of all models");
}

void check_scale(const torch::nn::Module& network, double loss_scale, int64_t step) {
  for (const auto* mixed : all_of(network)) {
    if (mixed->has_scale(loss_scale)) continue;
    throw ConfigError("step ", step, ": the network is in mixed precision, ", mixed->policy().name(),
                      ", with a loss scale of ", mixed->loss_scale(), ", and run() was given ", loss_scale,
                      "; give it the MixedPrecision: run(step, batch, loss_of, mixed)");
  }
}

void check_autocast(const torch::nn::Module& network, const at::Tensor& loss, uint64_t opened_before) {
  const bool opened = amp::autocast_scopes_opened() != opened_before || at::autocast::is_autocast_enabled(at::kCPU) ||
                      at::autocast::is_autocast_enabled(at::kCUDA);
  if (opened) return;
  for (const auto* mixed : all_of(network)) {
    const amp::Policy& policy = mixed->policy();
    if (!policy.cast_ops || policy.cast_model || has_casts(loss)) continue;  // 16-bit weights compute in 16 bits
    throw ConfigError("the network is in mixed precision, ", policy.name(),
                      ", and the step's function computed without its casts; give run() the MixedPrecision: run(step, "
                      "batch, loss_of, mixed), or call mixed.forward in the function; for a step in fp32 do that, too, "
                      "and open amp::DisableCasts in the function");
  }
}

void hold_masters(const torch::nn::Module& network) {
  for (const auto* mixed : all_of(network)) mixed->hold_masters();
}

}  // namespace lockstep::parallel
