#include "lockstep/parallel/replicas/replica_set.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/philox.h"
#include "lockstep/comm/fold_tree.h"
#include "lockstep/nn/checkpoint.h"
#include "lockstep/nn/thread_generator.h"
#include "lockstep/parallel/gradients/graph_walk.h"
#include "lockstep/parallel/lane_errors.h"
#include "lockstep/parallel/lane_generators.h"
#include "lockstep/parallel/replicas/layer_members.h"
#include "lockstep/parallel/sync_batch_norm.h"

namespace lockstep::parallel {

using at::Tensor;
using Tensors = ReplicaSet::Tensors;

// One forward of all replicas, and its backward.
struct ReplicaCall : torch::CustomClassHolder {
  // The seed of the call's random numbers, which is drawn where the first of them is.
  uint64_t seed() {
    const std::lock_guard lock(mutex);
    if (!drawn) {
      drawn = true;
      at::Generator all = source;
      const std::lock_guard own(all.mutex());
      value = at::check_generator<at::CPUGeneratorImpl>(all)->random64();
    }
    return value;
  }
  // Runs work for one replica, with its device and its random numbers; errors name it.
  void in_replica(size_t number, const std::function<void()>& work) {
    const c10::OptionalDeviceGuard device(set->devices()[number]);
    const nn::ThreadGenerator own(generators[number],
                                  [this, number] { return kernel_seed(seed(), 0, static_cast<uint32_t>(number)); });
    try {
      work();
    } catch (const ReplicaCancelled&) {
      throw;
    } catch (...) {
      rethrow_from("replica " + std::to_string(number), samples[number]);
    }
  }
  void check_unchanged() const {
    for (size_t i = 0; i < set->parameters_.size(); ++i) {
      if (set->parameters_[i]._version() == versions[i]) continue;
      throw ConfigError("DataParallel: a parameter of ", set->network_->name(),
                        " was changed between a forward and its backward, as by an optimizer's step; call backward() "
                        "before");
    }
  }
  // Throws ConfigError where a replica's outputs depend on a tensor whose gradient nobody would get.
  void check_leaves(size_t number) const;
  // The gradients of all inputs, by replica, and of the network's parameters.
  Tensors backward(const Tensors& of_outputs);
  std::vector<Tensors> gradients(const Tensors& of_outputs, bool keep);

  std::shared_ptr<ReplicaSet> set;
  std::vector<Tensors> leaves, outputs;  // by replica
  ReplicaSet::Modes modes;
  std::vector<int64_t> samples, versions;
  at::Generator source;  // that the caller's thread draws from
  std::vector<at::Generator> generators;
  std::mutex mutex;
  bool drawn = false;
  uint64_t value = 0;
  bool used = false;  // the graph is gone
};

namespace {

// autograd may give one tensor to several leaves, or a view of what it was given, or one value for many elements.
Tensor own_copy(Tensor gradient) {
  if (!gradient.defined() || gradient.is_sparse()) return gradient;
  const bool is_own = gradient.use_count() == 1 && gradient.storage().use_count() == 1;
  return is_own && gradient.is_non_overlapping_and_dense() ? gradient : gradient.clone();
}

// Of tensors that nobody else has.
Tensor plus(const Tensor& a, Tensor b) {
  if (!a.defined()) return b;
  if (!b.defined()) return a;
  return a.is_sparse() || b.is_sparse() ? a + b : b.add_(a);
}

// The sum of one parameter's gradients over replicas, with its dtype and on its device. Takes them.
Tensor folded(std::vector<Tensors>& gradients, size_t place, const Tensor& parameter, bool as_lanes) {
  comm::LeafFold<Tensor> fold;
  for (Tensors& own : gradients) {
    Tensor gradient = std::move(own[place]);
    if (gradient.defined()) {
      gradient = gradient.to(parameter.device());
      if (!as_lanes && gradients.size() > 1 && gradient.element_size() < 4) gradient = gradient.to(at::kFloat);
    }
    fold.push(std::move(gradient), plus);
  }
  const Tensor sum = fold.finish(plus);
  return sum.defined() ? sum.to(parameter.scalar_type()) : sum;
}

class AllReplicas : public torch::autograd::Function<AllReplicas> {
 public:
  static Tensors forward(torch::autograd::AutogradContext* context, at::TensorList /*inputs*/,
                         at::TensorList /*parameters*/, c10::intrusive_ptr<ReplicaCall> call) {
    Tensors outputs, fixed;
    for (const Tensors& own : call->outputs) {
      for (const Tensor& output : own) {
        outputs.push_back(output.detach());
        if (!output.requires_grad()) fixed.push_back(outputs.back());
      }
    }
    context->mark_non_differentiable(fixed);
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    return outputs;
  }

  static Tensors backward(torch::autograd::AutogradContext* context, Tensors of_outputs) {
    if (at::GradMode::is_enabled()) {
      throw ConfigError(
          "DataParallel: its backward has no graph of its own (create_graph); use DistributedDataParallel");
    }
    Tensors all =
        c10::static_intrusive_pointer_cast<ReplicaCall>(context->saved_data["call"].toCapsule())->backward(of_outputs);
    all.emplace_back();  // of the call itself
    return all;
  }
};

}  // namespace

// By replica: the gradients of its inputs, and then of its parameters, undefined where there is none.
std::vector<Tensors> ReplicaCall::gradients(const Tensors& of_outputs, bool keep) {
  std::vector<Tensors> found(outputs.size());
  std::vector<size_t> first(outputs.size(), 0);  // of a replica's outputs among all
  for (size_t i = 1; i < outputs.size(); ++i) first[i] = first[i - 1] + outputs[i - 1].size();
  set->compute(outputs.size(), [&](size_t number) {
    in_replica(number, [&] {
      Tensors variables = leaves[number], wanted, ends, end_gradients;
      const Tensors& own = set->replicas_[number].parameters;
      variables.insert(variables.end(), own.begin(), own.end());
      std::vector<size_t> places;
      std::unordered_set<const c10::TensorImpl*> seen;  // a tensor with two names is asked for once
      for (size_t i = 0; i < variables.size(); ++i) {
        const bool is_new = seen.insert(variables[i].unsafeGetTensorImpl()).second;
        if (is_new && variables[i].requires_grad()) wanted.push_back(variables[i]), places.push_back(i);
      }
      for (size_t i = 0; i < outputs[number].size(); ++i) {
        const Tensor& gradient = of_outputs[first[number] + i];
        if (!outputs[number][i].requires_grad() || !gradient.defined()) continue;
        ends.push_back(outputs[number][i]);
        end_gradients.push_back(gradient);
      }
      found[number].resize(variables.size());
      if (ends.empty() || wanted.empty()) return;
      Tensors all = torch::autograd::grad(ends, wanted, end_gradients, keep, /*create_graph=*/false,
                                          /*allow_unused=*/true);
      const size_t inputs = leaves[number].size();
      for (size_t i = 0; i < all.size(); ++i) {
        if (places[i] >= inputs) all[i] = own_copy(std::move(all[i]));
        found[number][places[i]] = std::move(all[i]);
      }
    });
  });
  return found;
}

void ReplicaCall::check_leaves(size_t number) const {
  std::unordered_set<const c10::TensorImpl*> known;
  for (const Tensor& leaf : leaves[number]) known.insert(leaf.unsafeGetTensorImpl());
  for (const Tensor& parameter : set->replicas_[number].parameters) known.insert(parameter.unsafeGetTensorImpl());
  for (const Tensor& output : outputs[number]) {
    if (!output.defined()) throw ConfigError("DataParallel: forward returns an undefined tensor");
    if (!output.requires_grad()) continue;
    for (const Tensor& leaf : leaves_of(output)) {
      if (known.contains(leaf.unsafeGetTensorImpl())) continue;
      throw ConfigError("DataParallel: the outputs depend on a tensor ", leaf.sizes(),
                        " that requires a gradient and is neither a tensor that forward() takes nor a parameter of ",
                        set->network_->name(), ": it would get none; give it to forward(), register it, or detach it");
    }
  }
}

Tensors ReplicaCall::backward(const Tensors& of_outputs) {
  const bool keep = torch::autograd::get_current_graph_task_keep_graph();
  if (used) {
    throw ConfigError("DataParallel: a second backward of one forward; give the first one retain_graph = true");
  }
  check_unchanged();
  const size_t replicas = outputs.size();
  const ReplicaSet::Modes present = set->modes_;
  set->set_modes(replicas, modes);
  std::vector<Tensors> found;
  try {
    found = gradients(of_outputs, keep);
  } catch (...) {
    set->set_modes(replicas, present);
    throw;
  }
  set->set_modes(replicas, present);
  used = !keep;
  const size_t inputs = leaves[0].size();
  Tensors all;
  for (size_t i = 0; i < replicas; ++i) {
    for (size_t k = 0; k < inputs; ++k) {
      if (leaves[i][k].defined()) all.push_back(std::move(found[i][k]));
    }
  }
  Tensors sums(set->parameters_.size());
  set->compute(replicas, [&](size_t number) {
    for (size_t i = number; i < sums.size(); i += replicas)
      sums[i] = folded(found, inputs + i, set->parameters_[i], set->options_.as_lanes);
  });
  std::move(sums.begin(), sums.end(), std::back_inserter(all));
  if (used) outputs.assign(outputs.size(), {});
  return all;
}

ReplicaSet::ReplicaSet(std::shared_ptr<torch::nn::Module> network, const Make& make, std::vector<at::Device> devices,
                       ReplicaSetOptions options)
    : network_(std::move(network)), devices_(std::move(devices)), options_(options), parts_(network_->modules()) {
  if (find_sync_group(*network_) != nullptr) {
    throw ConfigError("DataParallel: ", network_->name(),
                      " has SyncBatchNorms over ranks; leave convert_sync_batchnorm out, and give "
                      "DataParallelOptions::sync_batch_norm");
  }
  if (const std::string name = unregistered_member(*network_); !name.empty()) {
    throw ConfigError("DataParallel: ", name, " of ", network_->name(),
                      " was given another tensor than the layer has registered, which its copies would compute with; a "
                      "weight that is tied to another is one tensor under both names");
  }
  for (const auto& parameter : network_->named_parameters()) parameters_.push_back(parameter.value());
  for (const auto& buffer : network_->named_buffers()) buffers_.push_back(buffer.value());
  LaneGenerators generators(*network_);
  const LaneGenerators::Kept kept(generators);  // the copies' first weights, which are replaced, draw numbers
  for (size_t i = 0; i < devices_.size(); ++i) replicas_.push_back(make_replica(make, i));
  if (!options_.sync) return;
  exchange_ = std::make_shared<ReplicaExchange>();
  for (const Replica& replica : replicas_) join_statistics(*replica.module, exchange_);
}

ReplicaSet::Replica ReplicaSet::make_replica(const Make& make, size_t number) const {
  Replica replica{.module = make(devices_[number]), .parameters = {}, .buffers = {}, .parts = {}};
  if (replica.module == nullptr || replica.module == network_) {
    throw ConfigError("DataParallel: replica ", number, " of ", network_->name(), " is no network of its own");
  }
  replica.module->to(devices_[number]);
  const auto check = [&](const auto& own, const auto& wanted, const char* what) {
    const auto& items = own.items();
    const auto& others = wanted.items();
    for (size_t i = 0; i < std::max(items.size(), others.size()); ++i) {
      if (i < items.size() && i < others.size() && items[i].key() == others[i].key() &&
          items[i].value().sizes() == others[i].value().sizes()) {
        continue;
      }
      throw ConfigError("DataParallel: replica ", number, " of ", network_->name(), " has another ", what, ' ',
                        i < others.size() ? others[i].key() : items[i].key());
    }
  };
  const auto parameters = replica.module->named_parameters();
  const auto buffers = replica.module->named_buffers();
  check(parameters, network_->named_parameters(), "parameter");
  check(buffers, network_->named_buffers(), "buffer");
  for (const auto& parameter : parameters) replica.parameters.push_back(parameter.value());
  for (const auto& buffer : buffers) replica.buffers.push_back(buffer.value());
  replica.parts = replica.module->modules();
  if (replica.parts.size() != parts_.size()) {
    throw ConfigError("DataParallel: replica ", number, " of ", network_->name(), " has ", replica.parts.size(),
                      " modules in it, of ", parts_.size());
  }
  return replica;
}

void ReplicaSet::check_network() const {
  const auto is_same = [](const Tensors& ours, const Tensors& theirs) {
    return std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                      [](const Tensor& a, const Tensor& b) { return a.is_same(b); });
  };
  if (is_same(parameters_, network_->parameters()) && is_same(buffers_, network_->buffers())) return;
  throw ConfigError("DataParallel: ", network_->name(),
                    " has other parameters or buffers than when it was wrapped; make another DataParallel of it");
}

ReplicaSet::Modes ReplicaSet::modes() const {
  Modes found;
  for (const Tensor& parameter : parameters_) found.trained.push_back(parameter.requires_grad());
  for (const auto& part : parts_) found.training.push_back(part->is_training());
  return found;
}

void ReplicaSet::set_modes(size_t count, const Modes& modes) {
  for (size_t i = 0; i < count; ++i) {
    Replica& replica = replicas_[i];
    for (size_t k = 0; k < parameters_.size(); ++k) replica.parameters[k].requires_grad_(modes.trained[k]);
    for (size_t k = 0; k < parts_.size(); ++k) {
      if (replica.parts[k]->is_training() != modes.training[k]) replica.parts[k]->train(modes.training[k]);
    }
  }
  modes_ = modes;
}

// Gives the replicas the network's values and modes.
void ReplicaSet::refresh(size_t count) {
  check_network();
  // A recomputation around this forward leaves them as they are, which the replicas' threads know nothing of.
  for (const Tensor& buffer : buffers_) nn::keep_in_recomputation(buffer);
  const c10::AutoGradMode no_grad(false);
  for (size_t i = 0; i < count; ++i) {
    Replica& replica = replicas_[i];
    for (size_t k = 0; k < parameters_.size(); ++k) {
      const Tensor& whole = parameters_[k];
      if (i == 0 && whole.device() != devices_[0]) {
        throw ConfigError("DataParallel: ", network_->name(), " has parameters on ", whole.device().str(),
                          ", and its first replica is on ", devices_[0].str());
      }
      Tensor& own = replica.parameters[k];
      own.requires_grad_(false);
      own.set_data(whole.detach().to(devices_[i]));
    }
    for (size_t k = 0; k < buffers_.size(); ++k) {
      const Tensor& whole = buffers_[k];
      replica.buffers[k].set_data(i == 0 ? whole.detach()
                                         : whole.detach().to(devices_[i], whole.scalar_type(), false, true));
      // What changes the network's buffers before a backward that needs them is seen, as without replicas.
      if (i == 0) {
        replica.buffers[k].unsafeGetTensorImpl()->set_version_counter(whole.unsafeGetTensorImpl()->version_counter());
      }
    }
  }
  set_modes(count, modes());
}

void ReplicaSet::compute(size_t count, const std::function<void(size_t)>& work) {
  if (exchange_ == nullptr) return threads_.run(count, work);
  exchange_->begin(count);
  threads_.run(
      count,
      [&](size_t number) {
        work(number);
        exchange_->end();
      },
      [&] { exchange_->fail(); });
}

std::vector<Tensors> ReplicaSet::run(
    size_t count, const std::vector<Tensors>& inputs,
    const std::function<Tensors(torch::nn::Module& replica, const Tensors& inputs)>& forward) {
  refresh(count);
  const auto call = c10::make_intrusive<ReplicaCall>();
  call->set = shared_from_this();
  call->modes = modes_;
  call->source = nn::cpu_generator();
  call->outputs.resize(count);
  call->generators.resize(count);
  const bool with_graph = at::GradMode::is_enabled();
  for (size_t i = 0; i < count; ++i) {
    Tensors leaves;
    for (const Tensor& input : inputs[i]) {
      leaves.push_back(input.defined() ? input.detach().requires_grad_(input.requires_grad()) : input);
    }
    call->leaves.push_back(std::move(leaves));
    const auto with_samples =
        std::ranges::find_if(inputs[i], [](const Tensor& each) { return each.defined() && each.dim() > 0; });
    call->samples.push_back(with_samples == inputs[i].end() ? 1 : with_samples->size(0));
  }
  for (const Tensor& parameter : parameters_) call->versions.push_back(parameter._version());
  compute(count, [&](size_t number) {
    call->in_replica(number, [&] {
      call->outputs[number] = forward(*replicas_[number].module, call->leaves[number]);
      call->check_leaves(number);
    });
  });
  for (size_t i = 1; i < count; ++i) {
    if (call->outputs[i].size() == call->outputs[0].size()) continue;
    throw ConfigError("DataParallel: replica ", i, " returns ", call->outputs[i].size(), " tensors, the first one ",
                      call->outputs[0].size());
  }
  if (!with_graph) return std::move(call->outputs);
  Tensors flat;
  for (const Tensors& own : inputs) {
    std::ranges::copy_if(own, std::back_inserter(flat), [](const Tensor& each) { return each.defined(); });
  }
  const Tensors all = AllReplicas::apply(at::TensorList(flat), at::TensorList(parameters_), call);
  std::vector<Tensors> outputs;
  for (size_t i = 0, next = 0; i < count; ++i) {
    const size_t own = call->outputs[i].size();
    outputs.emplace_back(all.begin() + static_cast<int64_t>(next), all.begin() + static_cast<int64_t>(next + own));
    next += own;
  }
  return outputs;
}

}  // namespace lockstep::parallel
