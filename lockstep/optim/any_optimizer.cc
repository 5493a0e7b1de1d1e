#include "lockstep/optim/any_optimizer.h"

#include <map>
#include <mutex>
#include <thread>

namespace lockstep::optim {
namespace {

// All optimizers of the process, with the thread that has made each.
struct Registry {
  std::mutex mutex;
  std::map<AnyOptimizer*, std::thread::id> optimizers;
};

Registry& registry() {
  static auto* const all = new Registry;  // outlives optimizers that are static
  return *all;
}

}  // namespace

AnyOptimizer::AnyOptimizer() {
  const std::lock_guard lock(registry().mutex);
  registry().optimizers.emplace(this, std::this_thread::get_id());
}

AnyOptimizer::~AnyOptimizer() {
  const std::lock_guard lock(registry().mutex);
  registry().optimizers.erase(this);
}

std::vector<AnyOptimizer*> AnyOptimizer::of_this_thread() {
  const std::lock_guard lock(registry().mutex);
  std::vector<AnyOptimizer*> found;
  for (const auto& [optimizer, thread] : registry().optimizers) {
    if (thread == std::this_thread::get_id()) found.push_back(optimizer);
  }
  return found;
}

}  // namespace lockstep::optim
