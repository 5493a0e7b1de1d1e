#include "lockstep/amp/op_lists.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <set>

#include "lockstep/amp/op_tables.h"
#include "lockstep/base/error.h"

namespace lockstep::amp {
namespace {

using Devices = std::vector<c10::DeviceType>;

c10::DispatchKey autocast_key(c10::DeviceType device) {
  return device == c10::DeviceType::CPU ? c10::DispatchKey::AutocastCPU : c10::DispatchKey::AutocastCUDA;
}

// The kernel that autocast calls for a registered operator. It casts the arguments and calls the operator again,
// without autocast.
class CastKernel final : public c10::OperatorKernel {
 public:
  CastKernel(CastRule rule, c10::DeviceType device) : rule_(rule), device_(device) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) const {
    const c10::impl::ExcludeDispatchKeyGuard no_autocast(autocast_key(device_));
    const auto first = stack->end() - static_cast<std::ptrdiff_t>(op.schema().arguments().size());
    Caster caster(rule_, device_);
    std::for_each(first, stack->end(), [&](const c10::IValue& argument) { caster.see(argument); });
    std::transform(first, stack->end(), first, [&](const c10::IValue& argument) { return caster.cast(argument); });
    op.callBoxed(stack);
  }

 private:
  CastRule rule_;
  c10::DeviceType device_;
};

// Keeps to itself that a kernel is replaced by another, which libtorch warns of; all other warnings go where they went.
class ReplacesQuietly : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    if (warning.msg().find("verriding a previously registered kernel") == std::string::npos) before_->process(warning);
  }

 private:
  c10::WarningHandler* before_ = c10::WarningUtils::get_warning_handler();
  c10::WarningUtils::WarningHandlerGuard guard_{this};
};

// "aten::softmax" for "softmax".
std::string full_name(std::string_view name) {
  return name.find("::") == std::string_view::npos ? cat("aten::", name) : std::string(name);
}

std::string short_name(const c10::OperatorName& op) {
  const std::string name = op.name.rfind("aten::", 0) == 0 ? op.name.substr(6) : op.name;
  return op.overload_name.empty() ? name : cat(name, '.', op.overload_name);
}

[[noreturn]] void refuse(const std::string& name) {
  std::set<std::string> known;
  for (const auto& op : c10::Dispatcher::singleton().getAllOpNames()) known.insert(op.name);
  const std::string near = nearest(name, std::vector<std::string>(known.begin(), known.end()));
  throw ConfigError(name, ": libtorch has no such operator",
                    near.empty() ? "; expected one as aten::softmax" : cat("; did you mean ", near, "?"));
}

bool writes(const c10::FunctionSchema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(),
                     [](const c10::Argument& each) { return each.alias_info() && each.alias_info()->isWrite(); });
}

// The overloads of an operator that can be given cast arguments; never none.
std::vector<c10::OperatorHandle> overloads_of(const std::string& name) {
  std::vector<c10::OperatorHandle> out;
  bool known = false;
  for (const auto& op : c10::Dispatcher::singleton().getAllOpNames()) {
    if (op.name != name) continue;
    const auto handle = c10::Dispatcher::singleton().findSchema(op);
    known |= handle.has_value();
    if (handle && !writes(handle->schema())) out.push_back(*handle);
  }
  if (!known) refuse(name);
  if (out.empty()) throw ConfigError(name, ": works in place, so its dtype can't change; register the one without _");
  return out;
}

// The registered rules. Like libtorch's own lists they hold for the whole process.
class Registry {
 public:
  // Never freed: libtorch's dispatcher may be gone before it.
  static Registry& of_this_process() {
    static Registry& registry = *new Registry;
    return registry;
  }

  void set(const std::string& name, CastRule rule, const Devices& devices) {
    const auto overloads = overloads_of(name);
    const std::lock_guard lock(mutex_);
    entries_.erase(name);
    Entry entry{rule, devices, {}};
    const ReplacesQuietly quiet;
    for (const c10::DeviceType device : devices) {
      auto& library = entry.kernels.emplace_back(torch::Library::IMPL, name.substr(0, name.find("::")),
                                                 autocast_key(device), __FILE__, __LINE__);
      for (const auto& op : overloads) {
        library.impl(c10::toString(op.operator_name()).c_str(),
                     torch::CppFunction::makeFromBoxedFunctor(std::make_unique<CastKernel>(rule, device)));
      }
    }
    entries_.emplace(name, std::move(entry));
  }

  void erase(const std::string& name) {
    const std::lock_guard lock(mutex_);
    entries_.erase(name);
  }

  std::optional<CastRule> find(const std::string& name, c10::DeviceType device) const {
    const std::lock_guard lock(mutex_);
    const auto entry = entries_.find(name);
    if (entry == entries_.end()) return std::nullopt;
    const auto& devices = entry->second.devices;
    const bool covers = std::find(devices.begin(), devices.end(), device) != devices.end();
    return covers ? std::optional(entry->second.rule) : std::nullopt;
  }

 private:
  struct Entry {
    CastRule rule;
    Devices devices;
    std::vector<torch::Library> kernels;  // which these hold in place
  };

  mutable std::mutex mutex_;
  std::map<std::string, Entry> entries_;
};

void register_function(std::string_view name, CastRule rule) {
  Registry::of_this_process().set(full_name(name), rule, {c10::DeviceType::CPU, c10::DeviceType::CUDA});
}

}  // namespace

void register_half_function(std::string_view name) { register_function(name, CastRule::kHalf); }
void register_float_function(std::string_view name) { register_function(name, CastRule::kFloat); }
void register_promote_function(std::string_view name) { register_function(name, CastRule::kPromote); }
void unregister_function(std::string_view name) { Registry::of_this_process().erase(full_name(name)); }

void use_apex_lists() {
  for (const CastRule rule : {CastRule::kHalf, CastRule::kFloat, CastRule::kPromote}) {
    for (const std::string_view each : apex_list(rule)) {
      const std::string name = full_name(each);
      const auto overloads = overloads_of(name);
      const bool listed = std::any_of(overloads.begin(), overloads.end(), [](const c10::OperatorHandle& op) {
        return op.hasKernelForDispatchKey(c10::DispatchKey::AutocastCPU);
      });
      if (!listed) Registry::of_this_process().set(name, rule, {c10::DeviceType::CPU});
    }
  }
}

OpLists op_lists(c10::DeviceType device) {
  OpLists lists;
  for (const auto& op : c10::Dispatcher::singleton().getRegistrationsForDispatchKey(autocast_key(device))) {
    const auto registered = Registry::of_this_process().find(op.name, device);
    if (!registered && refused_by_libtorch(device, short_name(op))) continue;
    const CastRule rule = registered.value_or(libtorch_rule(device, short_name(op)));
    auto& list = rule == CastRule::kHalf ? lists.half : rule == CastRule::kFloat ? lists.full : lists.promote;
    list.push_back(short_name(op));
  }
  for (auto* list : {&lists.half, &lists.full, &lists.promote}) std::sort(list->begin(), list->end());
  return lists;
}

}  // namespace lockstep::amp
