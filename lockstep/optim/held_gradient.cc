#include "lockstep/optim/held_gradient.h"

#include <ATen/core/ivalue.h>
#include <torch/library.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "lockstep/base/error.h"

namespace lockstep::optim {
namespace {

constexpr auto kKey = c10::DispatchKey::DeferredInit;

// A tensor's own field for data of backends that are not libtorch's. Shallow copies, such as detach() makes, share it.
struct HoldMeta final : c10::BackendMeta {
  explicit HoldMeta(const Hold& of) : hold(of) {}
  Hold hold;
};

struct KeySet : c10::TensorImpl {
  using c10::TensorImpl::key_set_;
};

void set_keys(const at::Tensor& tensor, c10::DispatchKeySet keys) {
  tensor.unsafeGetTensorImpl()->*(&KeySet::key_set_) = keys;
}

template <typename Visit>
void for_each_tensor(const c10::IValue& value, const Visit& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) visit(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& each : value.toTensorVector()) visit(each);
  } else if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& each : value.toOptionalTensorVector()) {
      if (each && each->defined()) visit(*each);
    }
  }
}

bool is_of_zero_grad(std::string_view name) {
  return name == "aten::zero_" || name == "aten::detach" || name == "aten::detach_";
}

std::string describe(const Hold& hold) {
  return hold.loss_scale == 1 ? hold.why : cat("has a loss scale of ", hold.loss_scale, " in it; ", hold.why);
}

// The kernel of all operators for held tensors.
void call_with_held(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/, torch::jit::Stack* stack) {
  const auto& arguments = op.schema().arguments();
  const auto first = stack->end() - static_cast<std::ptrdiff_t>(arguments.size());
  at::Tensor held;
  std::for_each(first, stack->end(), [&](const c10::IValue& value) {
    for_each_tensor(value, [&](const at::Tensor& each) {
      if (!held.defined() && hold_of(each) != nullptr) held = each;
    });
  });
  const UseHeldGradients use;
  if (!held.defined() || is_of_zero_grad(op.operator_name().name)) return op.callBoxed(stack);
  const Hold hold = *hold_of(held);
  const auto refuse = [&] {
    throw ConfigError(op.operator_name().name, ": the gradient of shape ", held.sizes(), ' ', describe(hold));
  };
  if (!hold.readable) refuse();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].alias_info() == nullptr || !arguments[i].alias_info()->isWrite()) continue;
    for_each_tensor(first[static_cast<std::ptrdiff_t>(i)], [&](const at::Tensor& written) {
      if (hold_of(written) == nullptr) refuse();
    });
  }
  op.callBoxed(stack);
  // Single numbers, such as norms, are free.
  std::for_each(stack->end() - static_cast<std::ptrdiff_t>(op.schema().returns().size()), stack->end(),
                [&](const c10::IValue& value) {
                  for_each_tensor(value, [&](const at::Tensor& each) {
                    if (each.dim() > 0) optim::hold(each, hold);
                  });
                });
}

// Never freed: libtorch's dispatcher may be gone before it.
void register_kernel() {
  static const auto& library = *[] {
    auto* made = new torch::Library(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
    made->fallback(torch::CppFunction::makeFromBoxedFunction<&call_with_held>());
    return made;
  }();
  (void)library;
}

}  // namespace

void hold(const at::Tensor& gradient, const Hold& hold) {
  register_kernel();
  auto* impl = gradient.unsafeGetTensorImpl();
  impl->set_backend_meta(c10::make_intrusive<HoldMeta>(hold));
  set_keys(gradient, impl->key_set().add(kKey));
}

void release(const at::Tensor& gradient) {
  if (hold_of(gradient) == nullptr) return;
  auto* impl = gradient.unsafeGetTensorImpl();
  set_keys(gradient, impl->key_set().remove(kKey));
  impl->set_backend_meta(nullptr);
}

const Hold* hold_of(const at::Tensor& gradient) {
  auto* impl = gradient.unsafeGetTensorImpl();
  if (!impl->key_set().has(kKey)) return nullptr;
  const auto* meta = dynamic_cast<const HoldMeta*>(impl->get_backend_meta());
  return meta == nullptr ? nullptr : &meta->hold;
}

void hold_scaled(const at::Tensor& gradient, double loss_scale) {
  if (loss_scale == 1) return release(gradient);
  hold(gradient,
       {.why =
            "step by MixedPrecision's step(), which clips, too, and not by the optimizer itself (for code between the "
            "two MixedPrecision's unscale() takes the scale out)",
        .loss_scale = loss_scale});
}

void hold_divided(const at::Tensor& gradient, double loss_scale) {
  hold(gradient,
       {.why = "is this rank's alone, as all ranks have some after push_hook(), and no rank has the norm of "
               "them: step by a ShardedOptimizer with the hook's owners, and clip by MixedPrecision's step() "
               "(max_norm, max_value) or by clip_factor(std::sqrt(result.square_sum), max_norm) as update()'s "
               "grad_multiplier",
        .loss_scale = loss_scale,
        .divided = true});
}

double loss_scale_of(const at::Tensor& gradient) {
  const Hold* there = hold_of(gradient);
  return there == nullptr ? 1 : there->loss_scale;
}

void check_held(std::string_view user, const at::Tensor& gradient, double loss_scale, bool takes_divided) {
  const Hold* there = hold_of(gradient);
  if (there == nullptr) return;
  const bool is_for_user = there->divided ? takes_divided : loss_scale != 1;
  if (there->loss_scale == loss_scale && is_for_user) return;
  throw ConfigError(user, ": the gradient of shape ", gradient.sizes(), ' ', describe(*there));
}

UseHeldGradients::UseHeldGradients() : guard_(kKey) {}

}  // namespace lockstep::optim
