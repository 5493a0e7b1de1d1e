#include "lockstep/parallel/pipeline/stage_plan.h"

#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <unordered_map>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/nn/eval_mode.h"
#include "lockstep/parallel/pipeline/schedule.h"

namespace lockstep::parallel {
namespace {

// Each weight of a convolution is used for each pixel of the output, and that of a matrix once.
double work_of(const nn::Layer& layer, const at::Tensor& output) {
  const int64_t pixels = output.dim() == 4 ? output.size(2) * output.size(3) : 1;
  double work = static_cast<double>(output.numel());
  for (const auto& module : layer.modules) {
    for (const at::Tensor& weight : module->parameters()) {
      if (weight.dim() > 1) work += static_cast<double>(weight.numel() * (weight.dim() == 4 ? pixels : 1));
    }
  }
  return work;
}

}  // namespace

size_t StagePlan::end_of(int stage) const {
  const auto next = static_cast<size_t>(stage) + 1;
  return next < first.size() ? static_cast<size_t>(first[next]) : layers.size();
}

nn::Stage StagePlan::stage(const torch::nn::Module& network, int stage) const {
  return {network, layers, static_cast<size_t>(first[static_cast<size_t>(stage)]), end_of(stage)};
}

std::string StagePlan::text() const {
  std::string text = "layers ";
  for (int stage = 0; stage < stages(); ++stage) {
    const size_t begin = static_cast<size_t>(first[static_cast<size_t>(stage)]) + 1, end = end_of(stage);
    text += cat(stage == 0 ? "" : ", ", begin, end > begin ? cat('-', end) : "");
  }
  return text;
}

StagePlan plan_stages(torch::nn::Module& network, std::vector<nn::Layer> layers, const std::vector<int64_t>& shape,
                      int stages) {
  StagePlan plan{.layers = std::move(layers)};
  if (std::ssize(plan.layers) < stages) {
    throw ConfigError("--parallel pipeline: ", stages, " stages, and the network has ", plan.layers.size(),
                      " layers, of which each stage gets one at least; give --stages N or fewer processes");
  }
  const nn::EvalMode eval_mode({&network});
  const c10::AutoGradMode no_grad(false);
  std::vector<int64_t> sizes = shape;
  sizes.insert(sizes.begin(), 1);
  nn::Tensors tensors{at::zeros(sizes, network.parameters().front().options().requires_grad(false))};
  std::vector<double> work;
  for (const nn::Layer& layer : plan.layers) {
    tensors = layer.forward(std::move(tensors));
    work.push_back(work_of(layer, tensors.back()));
  }
  plan.first = partition(work, stages);
  return plan;
}

std::vector<int> stages_of(const StagePlan& plan, const std::vector<at::Tensor>& parameters) {
  std::unordered_map<const c10::TensorImpl*, int> stage_of;
  for (int stage = 0; stage < plan.stages(); ++stage) {
    for (auto i = static_cast<size_t>(plan.first[static_cast<size_t>(stage)]); i < plan.end_of(stage); ++i) {
      for (const auto& module : plan.layers[i].modules) {
        for (const at::Tensor& each : module->parameters()) {
          const auto [at, is_new] = stage_of.emplace(each.unsafeGetTensorImpl(), stage);
          if (!is_new && at->second != stage) {
            throw ConfigError("--parallel pipeline: stages ", at->second, " and ", stage, " share a weight of shape ",
                              each.sizes(), "; it takes networks whose layers don't");
          }
        }
      }
    }
  }
  std::vector<int> stages;
  for (const at::Tensor& parameter : parameters) {
    const auto found = stage_of.find(parameter.unsafeGetTensorImpl());
    if (found == stage_of.end()) {
      throw ConfigError("--parallel pipeline: a weight of shape ", parameter.sizes(),
                        " is in none of the network's layers");
    }
    stages.push_back(found->second);
  }
  return stages;
}

}  // namespace lockstep::parallel
