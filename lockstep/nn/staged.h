// A network as layers that follow one another, of which stages of a pipeline have some each.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lockstep::nn {

// What a layer passes on: its output, and before it what later ones need besides, such as a U-Net's skips.
using Tensors = std::vector<at::Tensor>;

struct Layer {
  std::vector<std::shared_ptr<torch::nn::Module>> modules;  // its own
  std::function<Tensors(Tensors inputs)> forward;
};

// A layer of one module without others' tensors. `apply(module, x)` returns what comes of x.
template <typename Module, typename Apply>
Layer layer_of(Module module, Apply apply) {
  std::shared_ptr<torch::nn::Module> own;
  if constexpr (requires { module.ptr(); }) {
    own = module.ptr();
  } else {
    own = module;
  }
  return {.modules = {own}, .forward = [module, apply](Tensors inputs) mutable {
            inputs.back() = apply(module, inputs.back());
            return inputs;
          }};
}

// What all layers make of the images: the forward of a network.
at::Tensor run(const std::vector<Layer>& layers, const at::Tensor& images);

// Registers a module without a forward, which is a level of names, as torch's Sequential is one.
std::shared_ptr<torch::nn::Module> add_level(torch::nn::Module& parent, const std::string& name);

// Layers [first, last) as a module. Its parameters and buffers are the network's, under the names that they have there,
// so that the stages' state dicts are parts of the whole's; it keeps no other ones.
class Stage : public torch::nn::Module {
 public:
  Stage(const torch::nn::Module& network, std::vector<Layer> layers, size_t first, size_t last);
  Tensors forward(Tensors inputs);

 private:
  std::vector<Layer> layers_;
};

}  // namespace lockstep::nn
