#include "lockstep/amp/anomaly.h"

#include <utility>

#include "lockstep/amp/anomaly_search.h"

namespace lockstep::amp {
namespace {

using internal::AnomalySearch;
using internal::OperatorCall;

// Callbacks are plain functions: they reach the search of their thread here.
thread_local std::shared_ptr<AnomalySearch> t_search;

// A node of backward: its operators count as called by no other, though backward() is an operator itself.
struct NodeCall : at::ObserverContext {
  explicit NodeCall(int depth) : outer_depth(depth) {}
  int outer_depth;
};

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  if (t_search == nullptr || t_search->found()) return nullptr;
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    t_search->begin_backward(function);
    return std::make_unique<NodeCall>(std::exchange(t_search->depth, 0));
  }
  if (t_search->depth++ > 0) return std::make_unique<OperatorCall>();
  return t_search->begin(function);
}

void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
  if (t_search == nullptr || context == nullptr || t_search->found()) return;
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    t_search->depth = static_cast<NodeCall*>(context)->outer_depth;
  } else if (--t_search->depth == 0) {
    t_search->end(*static_cast<OperatorCall*>(context), function.outputs());
  }
}

}  // namespace

AnomalyWatch::AnomalyWatch(const torch::nn::Module& module) : search_(t_search) {
  if (search_ != nullptr) return;
  search_ = std::make_shared<AnomalySearch>(module);
  callback_ = at::addThreadLocalCallback(at::RecordFunctionCallback(on_start, on_end)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
  t_search = search_;
}

AnomalyWatch::~AnomalyWatch() {
  if (!callback_) return;
  t_search = nullptr;
  at::removeCallback(*callback_);
}

std::optional<std::string> AnomalyWatch::found() const { return search_->found(); }

}  // namespace lockstep::amp
