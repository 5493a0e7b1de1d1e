#include "lockstep/amp/model_checks.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <torch/csrc/autograd/variable.h>

#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "lockstep/base/error.h"

namespace lockstep::amp {
namespace {

template <typename Visit>
void for_each_parameter(const std::vector<torch::nn::Module*>& models, Visit&& visit) {
  for (const auto* model : models) {
    for (const auto& item : model->named_parameters()) visit(item.key(), item.value());
  }
}

std::mutex registry_mutex;
std::unordered_map<const void*, const MixedPrecision*>& registry() {
  static std::unordered_map<const void*, const MixedPrecision*> owners;
  return owners;
}

}  // namespace

at::Device check_models(const std::vector<torch::nn::Module*>& models) {
  std::optional<at::Device> device;
  for_each_parameter(models, [&](const std::string& name, const at::Tensor& parameter) {
    if (torch::autograd::impl::post_acc_grad_hooks(parameter) != nullptr) {
      throw ConfigError(
          "amp: ", name,
          " has a post-accumulate-grad hook, as in a DistributedDataParallel; initialize first, then wrap");
    }
    if (parameter.is_floating_point() && parameter.element_size() < 4) {
      throw ConfigError("amp: ", name, " is ", c10::toString(parameter.scalar_type()),
                        " already; give the model in fp32, the level casts it");
    }
    if (!parameter.is_cpu() && !parameter.is_cuda()) {
      throw ConfigError("amp: ", name, " is on ", parameter.device().str(), "; expected cpu or cuda");
    }
    if (device && *device != parameter.device()) {
      throw ConfigError("amp: ", name, " is on ", parameter.device().str(), ", other parameters on ", device->str(),
                        "; move the model first, then initialize, then wrap");
    }
    device = parameter.device();
  });
  if (!device) throw ConfigError("amp: the model has no parameters");
  return *device;
}

void check_device(at::Device device, const Policy& policy) {
  if (!policy.casts()) return;
  try {
    const at::Tensor one = at::ones({1, 1}, at::TensorOptions(device).dtype(policy.dtype));
    one.mm(one);
  } catch (const c10::Error&) {
    throw ConfigError("amp: ", device.str(), " does not compute in ", c10::toString(policy.dtype), "; take ",
                      policy.dtype == at::kHalf ? "bf16" : "fp16", ", or O0");
  }
}

void check_optimizers(const std::vector<optim::OptimizerRef>& optimizers, const std::vector<torch::nn::Module*>& models,
                      const Policy& policy) {
  std::unordered_set<const void*> known;
  for_each_parameter(
      models, [&](const std::string&, const at::Tensor& parameter) { known.insert(parameter.unsafeGetTensorImpl()); });
  for (size_t i = 0; i < optimizers.size(); ++i) {
    if (policy.cast_model && optimizers[i].has_stepped()) {
      throw ConfigError("amp: optimizer ", i,
                        " has taken steps already; initialize before the first one, and load its state after that");
    }
    const auto parameters = optim::parameters_of(optimizers[i]);
    for (size_t p = 0; p < parameters.size(); ++p) {
      if (known.contains(parameters[p].unsafeGetTensorImpl())) continue;
      throw ConfigError("amp: parameter ", p, " of optimizer ", i, ' ', parameters[p].sizes(),
                        " is of none of the models; give the models that it steps");
    }
  }
}

InitializedModels::InitializedModels(const std::vector<torch::nn::Module*>& models, const MixedPrecision* owner) {
  const std::lock_guard lock(registry_mutex);
  for_each_parameter(models, [&](const std::string& name, const at::Tensor& parameter) {
    if (registry().contains(parameter.unsafeGetTensorImpl())) {
      throw ConfigError("amp: a model (", name, ") is in mixed precision already; give all models at once");
    }
    parameters_.push_back(parameter.unsafeGetTensorImpl());
  });
  for (const void* parameter : parameters_) registry()[parameter] = owner;
}

InitializedModels::~InitializedModels() {
  const std::lock_guard lock(registry_mutex);
  for (const void* parameter : parameters_) registry().erase(parameter);
}

const MixedPrecision* InitializedModels::owner_of(const at::Tensor& parameter) {
  const std::lock_guard lock(registry_mutex);
  const auto found = registry().find(parameter.unsafeGetTensorImpl());
  return found == registry().end() ? nullptr : found->second;
}

}  // namespace lockstep::amp
