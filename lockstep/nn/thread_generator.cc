#include "lockstep/nn/thread_generator.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/nn/kernel_builds.h"
#include "lockstep/nn/thread_key.h"

namespace lockstep::nn {
namespace {

thread_local ThreadGenerator* t_innermost = nullptr;

size_t place_of_generator(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  const auto found = std::find_if(arguments.begin(), arguments.end(), [](const c10::Argument& each) {
    return each.type()->isSubtypeOf(*c10::OptionalType::create(c10::GeneratorType::get()));
  });
  return static_cast<size_t>(found - arguments.begin());
}

// Gives the operator this thread's generator where it has none.
void draw(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  c10::IValue* arguments = stack->data() + (stack->size() - schema.arguments().size());
  c10::IValue& generator = arguments[place_of_generator(schema)];
  if (generator.isNone() && t_innermost != nullptr && is_on_cpu(schema, *stack)) {
    generator = t_innermost->generator();
  }
  const c10::impl::ExcludeDispatchKeyGuard below(kThreadKey);
  op.callBoxed(stack);
}

void install() {
  static const auto* const libraries = [] {
    auto* all = new std::vector<std::unique_ptr<torch::Library>>;  // never destroyed: threads may outlive it
    all->push_back(std::make_unique<torch::Library>(torch::Library::IMPL, "_", kThreadKey, __FILE__, __LINE__));
    all->back()->fallback(torch::CppFunction::makeFallthrough());
    all->push_back(std::make_unique<torch::Library>(torch::Library::IMPL, "aten", kThreadKey, __FILE__, __LINE__));
    auto& dispatcher = c10::Dispatcher::singleton();
    for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
      const auto op = dispatcher.findOp(name);
      if (!op || !op->hasSchema() || !name.name.starts_with("aten::")) continue;
      if (place_of_generator(op->schema()) == op->schema().arguments().size()) continue;
      const std::string full = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
      all->back()->impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&draw>());
    }
    build_kernels_in_turn(*all->back());
    return all;
  }();
  (void)libraries;
}

}  // namespace

ThreadGenerator::ThreadGenerator(at::Generator& generator, std::function<uint64_t()> seed)
    : generator_(generator),
      seed_(std::move(seed)),
      outer_(t_innermost),
      was_on_(c10::impl::tls_is_dispatch_key_included(kThreadKey)) {
  install();
  t_innermost = this;
  c10::impl::tls_set_dispatch_key_included(kThreadKey, true);
}

ThreadGenerator::~ThreadGenerator() {
  c10::impl::tls_set_dispatch_key_included(kThreadKey, was_on_);
  t_innermost = outer_;
}

const at::Generator& ThreadGenerator::generator() {
  if (!generator_.defined()) generator_ = at::detail::createCPUGenerator(seed_());
  return generator_;
}

at::Generator cpu_generator() {
  return t_innermost == nullptr ? at::detail::getDefaultCPUGenerator() : t_innermost->generator();
}

}  // namespace lockstep::nn
