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

StoragePlan::StoragePlan(const Value& root) { visit(root); }

void StoragePlan::visit(const Value& value) {
  if (const auto* tensor = value.get_if<at::Tensor>()) {
    add(*tensor);
  } else if (const auto* dict = value.get_if<Dict>()) {
    for (const auto& [key, item] : *dict) visit(item);
  } else if (const List* items = value.items()) {
    for (const Value& item : *items) visit(item);
  }
}

void StoragePlan::add(const at::Tensor& original) {
  if (!original.defined()) throw BugError("an undefined tensor can't be saved");
  if (original.layout() != at::kStrided) throw BugError("only dense tensors can be saved; call to_dense() first");
  if (!can_be_borrowed(original)) {
    copies_.try_emplace(original.unsafeGetTensorImpl(), original.detach().cpu().resolve_conj().resolve_neg());
  }
  const at::Tensor& tensor = on_cpu(original);
  const Identity identity{tensor.storage().unsafeGetStorageImpl(), tensor.scalar_type()};
  const auto [number, is_new] = numbers_.try_emplace(identity, storages_.size());
  if (is_new) storages_.push_back({.tensor = tensor});
  if (tensor.numel() == 0) return;
  Storage& storage = storages_[number->second];
  const bool first = storage.elements() == 0;
  storage.begin = first ? tensor.storage_offset() : std::min(storage.begin, tensor.storage_offset());
  storage.end = first ? end_of(tensor) : std::max(storage.end, end_of(tensor));
}

const at::Tensor& StoragePlan::on_cpu(const at::Tensor& tensor) const {
  return can_be_borrowed(tensor) ? tensor : copies_.at(tensor.unsafeGetTensorImpl());
}

StoredView StoragePlan::view(const at::Tensor& original) const {
  const at::Tensor& tensor = on_cpu(original);
  const size_t number = numbers_.at({tensor.storage().unsafeGetStorageImpl(), tensor.scalar_type()});
  const int64_t offset = tensor.numel() == 0 ? 0 : tensor.storage_offset() - storages_[number].begin;
  return {number, offset};
}

std::string_view StoragePlan::Storage::bytes() const {
  if (elements() == 0) return {};
  if (!has_memory()) throw BugError("a tensor of a checkpoint has a place, but no memory");
  const auto* memory = static_cast<const char*>(tensor.storage().data());
  return {memory + static_cast<size_t>(begin) * tensor.element_size(), size()};
}

}  // namespace lockstep::checkpoint
