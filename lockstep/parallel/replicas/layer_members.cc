#include "lockstep/parallel/replicas/layer_members.h"

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

namespace lockstep::parallel {
namespace {

// "weight" or "bias" of a layer of this type; nullptr where the module is none, or all is as it should be.
template <typename Layer>
const char* other_member(const torch::nn::Module& module) {
  const auto* layer = dynamic_cast<const Layer*>(&module);
  if (layer == nullptr) return nullptr;
  const auto registered = module.named_parameters(/*recurse=*/false);
  const auto differs = [&](const char* name, const at::Tensor& member) {
    const at::Tensor* own = registered.find(name);
    return own != nullptr && !own->is_same(member);
  };
  if (differs("weight", layer->weight)) return "weight";
  if constexpr (requires { layer->bias; }) {
    if (differs("bias", layer->bias)) return "bias";
  }
  return nullptr;
}

template <typename... Layers>
const char* other_member_of(const torch::nn::Module& module) {
  const char* found = nullptr;
  const auto look = [&](const char* member) { found = found == nullptr ? member : found; };
  (look(other_member<Layers>(module)), ...);
  return found;
}

}  // namespace

std::string unregistered_member(const torch::nn::Module& network) {
  using namespace torch::nn;
  for (const auto& part : network.named_modules()) {
    const char* const member =
        other_member_of<LinearImpl, BilinearImpl, EmbeddingImpl, EmbeddingBagImpl, Conv1dImpl, Conv2dImpl, Conv3dImpl,
                        ConvTranspose1dImpl, ConvTranspose2dImpl, ConvTranspose3dImpl, BatchNorm1dImpl, BatchNorm2dImpl,
                        BatchNorm3dImpl, InstanceNorm1dImpl, InstanceNorm2dImpl, InstanceNorm3dImpl, LayerNormImpl,
                        GroupNormImpl>(*part.value());
    if (member != nullptr) return part.key().empty() ? member : part.key() + '.' + member;
  }
  return "";
}

}  // namespace lockstep::parallel
