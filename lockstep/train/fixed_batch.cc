#include "lockstep/train/fixed_batch.h"

#include <ATen/ops/empty_like.h>

#include "lockstep/train/memory_format.h"

namespace lockstep::train {

bool FixedBatch::fits(const data::LaneBatch& batch) const {
  if (kept_.tensors.size() != batch.tensors.size()) return false;
  for (size_t i = 0; i < kept_.tensors.size(); ++i) {
    const auto& [name, kept] = kept_.tensors[i];
    const auto& [other, tensor] = batch.tensors[i];
    const bool alike = name == other && kept.sizes() == tensor.sizes() && kept.scalar_type() == tensor.scalar_type();
    if (!alike) return false;
  }
  return true;
}

bool FixedBatch::place(data::LaneBatch& batch) {
  const bool fit = fits(batch);
  if (!fit && batch.size() < kept_.size()) return false;
  if (!fit) {
    kept_ = batch;
    for (auto& [name, tensor] : kept_.tensors) {
      const bool images = name == "data" && tensor.dim() == 4;
      tensor = images ? at::empty_like(tensor, memory_format(channels_last_)) : at::empty_like(tensor);
    }
  }
  for (size_t i = 0; i < kept_.tensors.size(); ++i) {
    at::Tensor& kept = kept_.tensors[i].second;
    kept.copy_(batch.tensors[i].second, /*non_blocking=*/true);
    batch.tensors[i].second = kept;
  }
  return !fit;
}

}  // namespace lockstep::train
