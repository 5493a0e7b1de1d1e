#include "lockstep/checkpoint/formats/storage_plan.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/tensor_geometry.h"

namespace lockstep::checkpoint {
namespace {

bool can_be_borrowed(const at::Tensor& tensor) {
  return (tensor.device().is_cpu() || tensor.is_meta()) && !tensor.is_conj() && !tensor.is_neg();
}

int64_t end_of(const at::Tensor& tensor) {
  return element_end({tensor.storage_offset(), tensor.sizes().vec(), tensor.strides().vec()});
}

}  // namespace

StoragePlan::StoragePlan(const Value& root) {
  std::vector<at::Tensor> tensors;
  collect(root, tensors);
  for (const at::Tensor& tensor : tensors) add_window(tensor);
  for (auto& [identity, windows] : windows_) merge(windows);
  for (const at::Tensor& original : tensors) {
    const at::Tensor& tensor = on_cpu(original);
    Window& window = windows_.at(identity_of(tensor))[window_of(tensor)];
    if (window.number) continue;
    window.number = storages_.size();
    storages_.push_back({.tensor = tensor, .begin = window.begin, .end = window.end});
  }
}

void StoragePlan::collect(const Value& value, std::vector<at::Tensor>& tensors) {
  if (const auto* tensor = value.get_if<at::Tensor>()) {
    tensors.push_back(*tensor);
  } else if (const auto* dict = value.get_if<Dict>()) {
    for (const auto& [key, item] : *dict) collect(item, tensors);
  } else if (const List* items = value.items()) {
    for (const Value& item : *items) collect(item, tensors);
  }
}

StoragePlan::Identity StoragePlan::identity_of(const at::Tensor& tensor) {
  return {tensor.storage().unsafeGetStorageImpl(), tensor.scalar_type()};
}

void StoragePlan::add_window(const at::Tensor& original) {
  if (!original.defined()) throw BugError("an undefined tensor can't be saved");
  if (original.layout() != at::kStrided) throw BugError("only dense tensors can be saved; call to_dense() first");
  if (!can_be_borrowed(original)) {
    copies_.try_emplace(original.unsafeGetTensorImpl(), original.detach().cpu().resolve_conj().resolve_neg());
  }
  const at::Tensor& tensor = on_cpu(original);
  std::vector<Window>& windows = windows_[identity_of(tensor)];
  if (tensor.numel() > 0) windows.push_back({tensor.storage_offset(), end_of(tensor), {}});
}

// Those that overlap become one. Of a storage that only tensors without elements have, an empty one.
void StoragePlan::merge(std::vector<Window>& windows) {
  std::sort(windows.begin(), windows.end(), [](const Window& a, const Window& b) { return a.begin < b.begin; });
  std::vector<Window> merged;
  for (const Window& window : windows) {
    if (!merged.empty() && window.begin < merged.back().end) {
      merged.back().end = std::max(merged.back().end, window.end);
    } else {
      merged.push_back(window);
    }
  }
  if (merged.empty()) merged.emplace_back();
  windows = std::move(merged);
}

// The index of the window that the tensor is in; 0 for one without elements.
size_t StoragePlan::window_of(const at::Tensor& tensor) const {
  if (tensor.numel() == 0) return 0;
  const std::vector<Window>& windows = windows_.at(identity_of(tensor));
  const auto after = std::upper_bound(windows.begin(), windows.end(), tensor.storage_offset(),
                                      [](int64_t offset, const Window& window) { return offset < window.begin; });
  return static_cast<size_t>(after - windows.begin()) - 1;
}

const at::Tensor& StoragePlan::on_cpu(const at::Tensor& tensor) const {
  return can_be_borrowed(tensor) ? tensor : copies_.at(tensor.unsafeGetTensorImpl());
}

StoredView StoragePlan::view(const at::Tensor& original) const {
  const at::Tensor& tensor = on_cpu(original);
  const Window& window = windows_.at(identity_of(tensor))[window_of(tensor)];
  return {*window.number, tensor.numel() == 0 ? 0 : tensor.storage_offset() - window.begin};
}

std::string_view StoragePlan::Storage::bytes() const {
  if (elements() == 0) return {};
  if (!has_memory()) throw BugError("a tensor of a checkpoint has a place, but no memory");
  const auto* memory = static_cast<const char*>(tensor.storage().data());
  return {memory + static_cast<size_t>(begin) * tensor.element_size(), size()};
}

}  // namespace lockstep::checkpoint
