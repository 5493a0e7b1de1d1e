#include "lockstep/amp/anomaly.h"

#include <c10/util/ThreadLocalDebugInfo.h>

#include <utility>

#include "lockstep/amp/anomaly_search.h"

namespace lockstep::amp {
namespace {

using internal::AnomalySearch;
using internal::OperatorCall;

// Callbacks are plain functions: they find the search here. libtorch carries it, as it does the callbacks, to the
// threads that run a backward for this one.
struct SearchInfo : c10::DebugInfoBase {
  explicit SearchInfo(std::shared_ptr<AnomalySearch> its) : search(std::move(its)) {}
  std::shared_ptr<AnomalySearch> search;
};

// libtorch does not use this kind itself.
constexpr auto kKind = c10::DebugInfoKind::PRODUCER_INFO;

std::shared_ptr<AnomalySearch> current_search() {
  const auto* const info = dynamic_cast<SearchInfo*>(c10::ThreadLocalDebugInfo::get(kKind));
  return info == nullptr ? nullptr : info->search;
}

thread_local int t_depth = 0;  // how many operators are under way on this thread, one within another

// A node of backward: its operators count as called by no other, though backward() is an operator itself.
struct NodeCall : at::ObserverContext {
  explicit NodeCall(int depth) : outer_depth(depth) {}
  int outer_depth;
};

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  const auto search = current_search();
  if (search == nullptr || search->found()) return nullptr;
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    search->begin_backward(function);
    return std::make_unique<NodeCall>(std::exchange(t_depth, 0));
  }
  auto call = t_depth > 0 ? std::make_unique<OperatorCall>() : search->begin(function);
  ++t_depth;
  return call;
}

void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
  if (context == nullptr) return;
  if (function.scope() == at::RecordScope::BACKWARD_FUNCTION) {
    t_depth = static_cast<NodeCall*>(context)->outer_depth;
    return;
  }
  if (--t_depth > 0) return;
  const auto search = current_search();
  if (search == nullptr || search->found()) return;
  search->end(*static_cast<OperatorCall*>(context), function.outputs());
}

}  // namespace

AnomalyWatch::AnomalyWatch(const torch::nn::Module& module) : search_(current_search()) {
  if (search_ != nullptr) return;
  search_ = std::make_shared<AnomalySearch>(module);
  info_ = std::make_unique<c10::DebugInfoGuard>(kKind, std::make_shared<SearchInfo>(search_));
  callback_ = at::addThreadLocalCallback(at::RecordFunctionCallback(on_start, on_end)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

AnomalyWatch::~AnomalyWatch() {
  if (callback_) at::removeCallback(*callback_);
}

std::optional<std::string> AnomalyWatch::found() const { return search_->found(); }

}  // namespace lockstep::amp
