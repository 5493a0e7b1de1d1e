#include "lockstep/parallel/gradients/pass_end.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

#include <utility>

namespace lockstep::parallel {
namespace {

using torch::autograd::variable_list;
using Pass = std::shared_ptr<const bool>;

void wait_for_end(std::function<void()> then, Pass pass);

// The engine has no call for the end of an outer pass. So the pass goes on from a node of the outer graph.
class OuterHook final : public torch::autograd::FunctionPreHook {
 public:
  OuterHook(std::function<void()> then, Pass pass) : then_(std::move(then)), pass_(std::move(pass)) {}
  variable_list operator()(const variable_list& gradients) override {
    if (pass_ != nullptr) wait_for_end(std::move(then_), std::exchange(pass_, nullptr));
    return gradients;
  }

 private:
  std::function<void()> then_;
  Pass pass_;  // null once it is passed on
};

// When a pass within another is over, the engine still evaluates the outer node that has run it.
void pass_is_over(const std::function<void()>& then, const Pass& pass) {
  const auto outer = torch::autograd::get_current_node();
  if (outer == nullptr) return then();
  for (const auto& edge : outer->next_edges()) {
    if (!edge.is_valid()) continue;
    edge.function->add_pre_hook(std::make_unique<OuterHook>(then, pass));
    return;
  }
}

void wait_for_end(std::function<void()> then, Pass pass) {
  torch::autograd::Engine::get_default_engine().queue_callback(
      [then = std::move(then), pass = std::move(pass)] { pass_is_over(then, pass); });
}

}  // namespace

std::weak_ptr<const bool> at_pass_end(std::function<void()> then) {
  const auto pass = std::make_shared<const bool>(true);
  wait_for_end(std::move(then), pass);
  return pass;
}

}  // namespace lockstep::parallel
