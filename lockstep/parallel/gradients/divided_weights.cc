#include "lockstep/parallel/gradients/divided_weights.h"

#include <c10/util/intrusive_ptr.h>

#include <algorithm>
#include <unordered_map>

namespace lockstep::parallel {
namespace {

struct Noted {
  c10::weak_intrusive_ptr<c10::TensorImpl> weight;  // its address is not used again while this lives
  WeightPart part;
};

std::unordered_map<const c10::TensorImpl*, Noted>& noted() {
  static auto& all = *new std::unordered_map<const c10::TensorImpl*, Noted>;  // libtorch may be gone before it
  return all;
}

}  // namespace

void set_part(const at::Tensor& weight, const WeightPart& part) {
  std::erase_if(noted(), [](const auto& each) { return each.second.weight.expired(); });
  noted().insert_or_assign(weight.unsafeGetTensorImpl(),
                           Noted{c10::weak_intrusive_ptr<c10::TensorImpl>(weight.getIntrusivePtr()), part});
}

WeightPart part_of(const at::Tensor& weight) {
  const auto found = noted().find(weight.unsafeGetTensorImpl());
  return found == noted().end() ? WeightPart{} : found->second.part;
}

bool is_part(const at::Tensor& weight) { return part_of(weight).parts > 1; }

bool any_part(const std::vector<at::Tensor>& weights) { return std::ranges::any_of(weights, is_part); }

}  // namespace lockstep::parallel
