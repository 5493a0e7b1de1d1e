#include "lockstep/nn/checkpoint.h"

#include <ATen/Context.h>
#include <ATen/SequenceNumber.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/alias.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/nn/function_graph.h"
#include "lockstep/nn/thread_generator.h"

namespace lockstep::nn {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

struct Call;

thread_local std::vector<Call*> t_calls;  // whose functions are called for the first time, the innermost last
thread_local int t_recomputing = 0;
thread_local int t_searching = 0;  // searches for gradients of parameters that are under way

// The states of the random generators of these devices and of this thread's on the CPU.
class Generators {
 public:
  explicit Generators(const Tensors& tensors) : generators_{cpu_generator()} {
    for (const Tensor& tensor : tensors) {
      if (tensor.is_cpu()) continue;
      const at::Generator& generator = at::globalContext().defaultGenerator(tensor.device());
      if (std::find(generators_.begin(), generators_.end(), generator) == generators_.end()) {
        generators_.push_back(generator);
      }
    }
    for (const auto& generator : generators_) states_.push_back(generator.get_state());
  }
  void restore() {
    for (size_t i = 0; i < generators_.size(); ++i) generators_[i].set_state(states_[i]);
  }

 private:
  std::vector<at::Generator> generators_;
  Tensors states_;
};

// Autocast as it is on one kind of device.
class Autocast {
 public:
  explicit Autocast(c10::DeviceType device)
      : device_(device),
        enabled_(at::autocast::is_autocast_enabled(device)),
        dtype_(at::autocast::get_autocast_dtype(device)) {}
  void restore() const {
    at::autocast::set_autocast_enabled(device_, enabled_);
    at::autocast::set_autocast_dtype(device_, dtype_);
  }

 private:
  c10::DeviceType device_;
  bool enabled_;
  at::ScalarType dtype_;
};

// A call of the function, as its forward was.
struct Call : torch::CustomClassHolder {
  std::function<Tensors(const Tensors&)> function;
  CheckpointOptions options;
  std::vector<Autocast> autocast;
  std::optional<Generators> generators;
  Tensors outputs;  // for the node's forward alone
};

std::vector<Autocast> autocast_now(const Tensors& inputs) {
  std::vector<Autocast> now = {Autocast(c10::DeviceType::CPU)};
  for (const Tensor& input : inputs) {
    if (!input.is_cpu()) now.emplace_back(input.device().type());
  }
  return now;
}

// The first call of the function.
class FirstCall {
 public:
  explicit FirstCall(Call& call) { t_calls.push_back(&call); }
  ~FirstCall() { t_calls.pop_back(); }
  FirstCall(const FirstCall&) = delete;
  FirstCall& operator=(const FirstCall&) = delete;
};

// Sets all that the call saw, and gives back what it finds at its end.
class Recomputation {
 public:
  Recomputation(Call& call, const Tensors& inputs) : call_(call), autocast_(autocast_now(inputs)) {
    ++t_recomputing;
    if (call_.generators) {
      generators_.emplace(inputs);
      call_.generators->restore();
    }
    for (const auto& autocast : call_.autocast) autocast.restore();
    at::autocast::increment_nesting();
    for (const Tensor& buffer : call_.options.buffers) buffers_.push_back(buffer.variable_data().clone());
  }
  // Graphs know the buffers' versions, so those are left as they are.
  ~Recomputation() {
    for (size_t i = 0; i < buffers_.size(); ++i) call_.options.buffers[i].variable_data().copy_(buffers_[i]);
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    for (const auto& autocast : autocast_) autocast.restore();
    if (generators_) generators_->restore();
    --t_recomputing;
  }
  Recomputation(const Recomputation&) = delete;
  Recomputation& operator=(const Recomputation&) = delete;

 private:
  Call& call_;
  std::vector<Autocast> autocast_;
  std::optional<Generators> generators_;
  Tensors buffers_;
};

// Leaves of the same values, so that a call's graph begins with them.
Tensors leaves_of(const Tensors& tensors) {
  Tensors leaves;
  for (const Tensor& tensor : tensors) leaves.push_back(tensor.detach().requires_grad_(tensor.requires_grad()));
  return leaves;
}

// The inputs with their graphs, and without their hooks: the gradients found here pass through those afterwards.
Tensors aliases_of(const Tensors& tensors) {
  const c10::AutoGradMode with_graph(true);
  Tensors aliases;
  for (const Tensor& tensor : tensors) aliases.push_back(tensor.requires_grad() ? at::alias(tensor) : tensor);
  return aliases;
}

// A hook of a parameter that passes over what a node below finds for it. The node gives that to the parameter, and then
// the hook runs.
class OnceHook final : public torch::autograd::FunctionPreHook {
 public:
  explicit OnceHook(std::unique_ptr<FunctionPreHook> hook) : hook_(std::move(hook)) {}
  Tensors operator()(const Tensors& gradients) override { return t_searching > 0 ? gradients : (*hook_)(gradients); }

 private:
  std::unique_ptr<FunctionPreHook> hook_;
};

// A node's search for the gradients of its function's parameters. autograd::grad runs the hooks of the tensors that it
// is asked for. Other lanes may run as long as a search lasts, on threads of their own (SyncBatchNorm).
class Search {
 public:
  explicit Search(const Tensors& parameters) {
    for (const Tensor& parameter : parameters) {
      for (auto& hook : torch::autograd::impl::hooks(parameter)) {
        if (dynamic_cast<OnceHook*>(hook.get()) == nullptr) hook = std::make_unique<OnceHook>(std::move(hook));
      }
    }
    ++t_searching;
  }
  ~Search() { --t_searching; }
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;
};

class Checkpoint : public torch::autograd::Function<Checkpoint> {
 public:
  static Tensors forward(torch::autograd::AutogradContext* context, at::TensorList inputs, at::TensorList parameters,
                         c10::intrusive_ptr<Call> call) {
    Tensors saved = inputs.vec(), fixed;
    saved.insert(saved.end(), parameters.begin(), parameters.end());
    context->save_for_backward(saved);
    context->saved_data["inputs"] = static_cast<int64_t>(inputs.size());
    Tensors outputs;
    for (const Tensor& output : call->outputs) {
      outputs.push_back(output.variable_data());
      if (!output.requires_grad()) fixed.push_back(outputs.back());
    }
    context->mark_non_differentiable(fixed);
    call->outputs.clear();
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    return outputs;
  }

  static Tensors backward(torch::autograd::AutogradContext* context, Tensors gradients) {
    const bool twice = at::GradMode::is_enabled();  // create_graph: the graph goes on to the inputs' own
    const auto call = c10::static_intrusive_pointer_cast<Call>(context->saved_data["call"].toCapsule());
    const Tensors saved = context->get_saved_variables();
    const auto count = context->saved_data["inputs"].toInt();
    const Tensors given(saved.begin(), saved.begin() + count);
    const Tensors parameters(saved.begin() + count, saved.end());
    Tensors variables = twice ? aliases_of(given) : leaves_of(given);
    const Tensors outputs = recompute(*call, variables);
    variables.insert(variables.end(), parameters.begin(), parameters.end());
    const Search search(parameters);
    return gradients_of(context, outputs, gradients, variables, twice);
  }

 private:
  static Tensors recompute(Call& call, const Tensors& inputs) {
    const c10::AutoGradMode with_graph(true);
    const Recomputation as_before(call, inputs);
    return call.function(inputs);
  }

  static Tensors gradients_of(torch::autograd::AutogradContext* context, const Tensors& outputs,
                              const Tensors& gradients, const Tensors& variables, bool twice) {
    if (outputs.size() != gradients.size()) {
      throw ConfigError("checkpoint: the function gave ", gradients.size(), " tensors, and ", outputs.size(),
                        " when it was called again; it must do the same both times");
    }
    Tensors ends, end_gradients, wanted;
    std::vector<size_t> numbers;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].requires_grad() || !gradients[i].defined()) continue;
      ends.push_back(outputs[i]);
      end_gradients.push_back(gradients[i]);
    }
    for (size_t i = 0; i < variables.size(); ++i) {
      if (!variables[i].requires_grad() || !context->needs_input_grad(i)) continue;
      wanted.push_back(variables[i]);
      numbers.push_back(i);
    }
    Tensors result(variables.size() + 1);
    if (ends.empty() || wanted.empty()) return result;
    const Tensors found = torch::autograd::grad(ends, wanted, end_gradients, /*retain_graph=*/twice,
                                                /*create_graph=*/twice, /*allow_unused=*/true);
    for (size_t i = 0; i < found.size(); ++i) result[numbers[i]] = found[i];
    return result;
  }
};

}  // namespace

bool is_checkpointing() { return !t_calls.empty() || is_recomputing(); }
bool is_recomputing() { return t_recomputing > 0; }

void keep_in_recomputation(const Tensor& buffer) {
  for (Call* call : t_calls) {
    Tensors& kept = call->options.buffers;
    const auto is_it = [&](const Tensor& each) { return each.is_same(buffer); };
    if (std::none_of(kept.begin(), kept.end(), is_it)) kept.push_back(buffer);
  }
}

Tensors checkpoint(const std::function<Tensors(const Tensors&)>& function, const Tensors& inputs,
                   const CheckpointOptions& options) {
  if (!at::GradMode::is_enabled()) return function(inputs);
  auto call = c10::make_intrusive<Call>();
  call->function = function;
  call->options = options;
  call->autocast = autocast_now(inputs);
  if (options.preserve_rng_state) call->generators.emplace(inputs);
  const Tensors leaves = leaves_of(inputs);
  const uint64_t begin = at::sequence_number::peek();
  {
    const FirstCall first(*call);
    call->outputs = function(leaves);
  }
  const Tensors parameters = parameters_reached(call->outputs, leaves, begin, options.buffers);
  return Checkpoint::apply(at::TensorList(inputs), at::TensorList(parameters), call);
}

Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& input,
                  const CheckpointOptions& options) {
  const auto of_list = [function](const Tensors& inputs) { return Tensors{function(inputs[0])}; };
  return checkpoint(of_list, Tensors{input}, options)[0];
}

}  // namespace lockstep::nn
