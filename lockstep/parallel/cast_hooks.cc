#include "lockstep/parallel/cast_hooks.h"

#include <torch/csrc/autograd/function_hook.h>

#include "lockstep/parallel/graph_walk.h"

namespace lockstep::parallel {
namespace {

using torch::autograd::variable_list;

// Before the node that casts back.
class CastHook final : public torch::autograd::FunctionPreHook {
 public:
  CastHook(size_t parameter, std::weak_ptr<const TakeUncast> take) : parameter_(parameter), take_(std::move(take)) {}
  variable_list operator()(const variable_list& gradients) override {
    const auto take = take_.lock();
    const bool taken = take != nullptr && gradients[0].defined() && (*take)(parameter_, gradients[0]);
    return taken ? variable_list(1) : gradients;
  }

 private:
  size_t parameter_;
  std::weak_ptr<const TakeUncast> take_;
};

}  // namespace

void hook_casts(const at::Tensor& loss, const std::vector<at::Tensor>& parameters,
                const std::shared_ptr<const TakeUncast>& take) {
  const auto casts = lone_casts(loss, parameters);
  for (size_t i = 0; i < casts.size(); ++i) {
    if (casts[i] != nullptr) casts[i]->add_pre_hook(std::make_unique<CastHook>(i, take));
  }
}

}  // namespace lockstep::parallel
