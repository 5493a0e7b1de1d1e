#include "lockstep/parallel/gradients/joint_finish.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/graph_task.h>

#include <map>
#include <mutex>
#include <utility>

namespace lockstep::parallel {
namespace {

using torch::autograd::variable_list;

struct Finish {
  std::function<void()> act;
  std::shared_ptr<const bool> waits;
};
using Finishes = std::multimap<uint32_t, Finish>;

// Of the backward calls under way, which own theirs, by the engine's number of the call.
struct UnderWay {
  std::mutex mutex;
  std::map<int, std::weak_ptr<Finishes>> calls;
};

UnderWay& under_way() {
  static auto& calls = *new UnderWay;
  return calls;
}

void add_to_call(Finishes added);

// The engine has no call for the end of an outer backward. So the wait goes on from a node of the outer graph.
class OuterHook final : public torch::autograd::FunctionPreHook {
 public:
  explicit OuterHook(Finishes finishes) : finishes_(std::move(finishes)) {}
  variable_list operator()(const variable_list& gradients) override {
    if (!finishes_.empty()) add_to_call(std::exchange(finishes_, {}));
    return gradients;
  }

 private:
  Finishes finishes_;  // empty once they are passed on
};

// When a call within another is over, the engine still evaluates the outer node that has run it.
void call_is_over(Finishes finishes) {
  const auto outer = torch::autograd::get_current_node();
  for (size_t i = 0; outer != nullptr && i < outer->next_edges().size(); ++i) {
    const auto& edge = outer->next_edge(i);
    if (!edge.is_valid()) continue;
    edge.function->add_pre_hook(std::make_unique<OuterHook>(std::move(finishes)));
    return;
  }
  for (const auto& [order, finish] : finishes) finish.act();
}

void add_to_call(Finishes added) {
  auto& [mutex, calls] = under_way();
  const std::lock_guard lock(mutex);
  std::erase_if(calls, [](const auto& call) { return call.second.expired(); });
  auto& call = calls[torch::autograd::get_current_graph_task_id()];
  auto finishes = call.lock();
  if (finishes == nullptr) {
    finishes = std::make_shared<Finishes>();
    call = finishes;
    torch::autograd::Engine::get_default_engine().queue_callback(
        [finishes] { call_is_over(std::exchange(*finishes, {})); });
  }
  finishes->merge(added);
}

}  // namespace

std::weak_ptr<const bool> finish_with_backward(uint32_t order, std::function<void()> finish) {
  auto waits = std::make_shared<const bool>(true);
  Finishes added;
  added.emplace(order, Finish{.act = std::move(finish), .waits = waits});
  add_to_call(std::move(added));
  return waits;
}

}  // namespace lockstep::parallel
