#include "lockstep/nn/staged.h"

#include <string>
#include <string_view>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::nn {
namespace {

// Registers a module under a name of several levels, as "layer1.0".
void add(torch::nn::Module& whole, std::string_view name, const std::shared_ptr<torch::nn::Module>& module) {
  torch::nn::Module* level = &whole;
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    const std::string first(name.substr(0, dot));
    const auto children = level->named_children();
    const auto* found = children.find(first);
    level = found ? found->get() : add_level(*level, first).get();
    name.remove_prefix(dot + 1);
  }
  level->register_module(std::string(name), module);
}

std::string name_of(const torch::nn::Module& network, const torch::nn::Module& part) {
  for (const auto& each : network.named_modules("", /*include_self=*/false)) {
    if (each.value().get() == &part) return each.key();
  }
  throw BugError("a layer of ", network.name(), " has a module that is none of it");
}

Tensors pass(const std::vector<Layer>& layers, Tensors tensors) {
  for (const Layer& layer : layers) tensors = layer.forward(std::move(tensors));
  return tensors;
}

}  // namespace

std::shared_ptr<torch::nn::Module> add_level(torch::nn::Module& parent, const std::string& name) {
  return parent.register_module(name, std::make_shared<torch::nn::Module>());
}

at::Tensor run(const std::vector<Layer>& layers, const at::Tensor& images) { return pass(layers, {images}).back(); }

Stage::Stage(const torch::nn::Module& network, std::vector<Layer> layers, size_t first, size_t last)
    : torch::nn::Module("Stage") {
  if (first >= last || last > layers.size()) {
    throw ConfigError("a stage of layers ", first, " to ", last, " of the ", layers.size(), " that ", network.name(),
                      " has");
  }
  for (size_t i = first; i < last; ++i) {
    for (const auto& module : layers[i].modules) add(*this, name_of(network, *module), module);
    layers_.push_back(std::move(layers[i]));
  }
}

Tensors Stage::forward(Tensors inputs) { return pass(layers_, std::move(inputs)); }

}  // namespace lockstep::nn
