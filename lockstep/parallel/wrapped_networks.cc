#include "lockstep/parallel/wrapped_networks.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

// All of the process, in the order in which they were wrapped. One thread runs the steps.
std::vector<WrappedNetwork*>& registered() {
  static auto& networks = *new std::vector<WrappedNetwork*>;
  return networks;
}

std::unordered_set<const c10::TensorImpl*> identities(const std::vector<NamedParameter>& parameters) {
  std::unordered_set<const c10::TensorImpl*> found;
  for (const auto& parameter : parameters) found.insert(parameter.tensor.unsafeGetTensorImpl());
  return found;
}

}  // namespace

WrappedNetwork::WrappedNetwork(std::shared_ptr<World> world, const torch::nn::Module& module, BufferKeeper& buffers,
                               std::shared_ptr<SyncGroup> sync)
    : world_(std::move(world)),
      module_(module),
      parameters_(trainable(named_parameters(module))),
      wrapped_(identities(parameters_)),
      buffers_(buffers),
      sync_(std::move(sync)) {
  WrappedNetwork* const before = wrapped_before(module_);
  const auto all_there = all();
  if (before != nullptr) {
    number_ = before->number_;
    std::erase(registered(), before);
  } else {
    const auto is_taken = [&](const WrappedNetwork* each) { return each->number_ == number_; };
    while (std::any_of(all_there.begin(), all_there.end(), is_taken)) ++number_;
  }
  registered().push_back(this);
}

WrappedNetwork* WrappedNetwork::wrapped_before(const torch::nn::Module& module) {
  const auto parameters = trainable(named_parameters(module));
  WrappedNetwork* before = nullptr;
  for (WrappedNetwork* other : registered()) {
    const auto is_shared = [&](const NamedParameter& each) { return other->shares(each.tensor); };
    const auto found = std::find_if(parameters.begin(), parameters.end(), is_shared);
    if (found == parameters.end()) continue;
    if (&other->module_ != &module && other->wrapped_ != identities(parameters)) {
      const auto theirs = std::find_if(other->parameters_.begin(), other->parameters_.end(),
                                       [&](const NamedParameter& each) { return each.tensor.is_same(found->tensor); });
      throw ConfigError("DistributedDataParallel: ", found->name, " is wrapped already, as ", theirs->name,
                        " of another network; wrap the networks that share it as one module");
    }
    before = other;
  }
  return before;
}

void WrappedNetwork::check(const torch::nn::Module& module) { wrapped_before(module); }

bool WrappedNetwork::is_registered() const {
  return std::find(registered().begin(), registered().end(), this) != registered().end();
}

WrappedNetwork::~WrappedNetwork() { std::erase(registered(), this); }

bool WrappedNetwork::shares(const at::Tensor& parameter) const {
  return wrapped_.contains(parameter.unsafeGetTensorImpl());
}

std::vector<WrappedNetwork*> WrappedNetwork::all() const {
  std::vector<WrappedNetwork*> networks;
  for (WrappedNetwork* each : registered()) {
    if (each->world_ == world_) networks.push_back(each);
  }
  std::sort(networks.begin(), networks.end(), [](const auto* a, const auto* b) { return a->number_ < b->number_; });
  return networks;
}

void WrappedNetwork::check_parameters() const {
  const auto is_new = [this](const at::Tensor& tensor) {
    return tensor.requires_grad() && !wrapped_.contains(tensor.unsafeGetTensorImpl());
  };
  const std::vector<at::Tensor> now = module_.parameters();
  if (std::none_of(now.begin(), now.end(), is_new)) return;
  for (const auto& item : module_.named_parameters()) {
    if (is_new(item.value())) refuse_new(item.key());
  }
}

void WrappedNetwork::set_gradients_aside() {
  aside_.clear();
  for (const auto& parameter : parameters_) aside_.push_back(std::exchange(parameter.tensor.mutable_grad(), {}));
}

void WrappedNetwork::put_gradients_back() noexcept {
  for (size_t i = 0; i < aside_.size(); ++i) parameters_[i].tensor.mutable_grad() = std::move(aside_[i]);
  aside_.clear();
}

void WrappedNetwork::add_reached(std::unordered_set<const c10::TensorImpl*>& reached) const {
  for (const auto& parameter : parameters_) {
    if (parameter.tensor.grad().defined()) reached.insert(parameter.tensor.unsafeGetTensorImpl());
  }
}

std::vector<at::Tensor> training_buffers(const World& world) {
  std::vector<at::Tensor> all;
  for (const WrappedNetwork* each : registered()) {
    if (!each->is_of(world)) continue;
    for (const auto& module : each->module().modules()) {
      if (!module->is_training()) continue;
      for (const at::Tensor& buffer : module->buffers(/*recurse=*/false)) all.push_back(buffer);
    }
  }
  return all;
}

bool is_wrapped(const at::Tensor& parameter) {
  return std::ranges::any_of(registered(), [&](const WrappedNetwork* each) { return each->shares(parameter); });
}

bool are_unfolded(const std::vector<at::Tensor>& parameters) {
  return std::any_of(registered().begin(), registered().end(), [&](const WrappedNetwork* network) {
    const auto is_its_own = [&](const at::Tensor& each) { return network->shares(each); };
    return network->is_unfolded() && std::any_of(parameters.begin(), parameters.end(), is_its_own);
  });
}

}  // namespace lockstep::parallel
