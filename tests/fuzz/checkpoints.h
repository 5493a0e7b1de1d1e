// What the fuzzing programs of checkpoints share.
#pragma once

#include <ATen/ATen.h>

#include "fuzz.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::fuzz {

// Looks at every element of the tree's tensors, so that one outside its storage is seen; of the large ones, of which
// a small file may hold many views, at the last.
inline void touch(const checkpoint::Value& value) {
  constexpr int64_t kMost = 1 << 16;
  if (const auto* tensor = value.get_if<at::Tensor>()) {
    if (tensor->numel() == 0) return;
    if (tensor->numel() <= kMost) tensor->clone();
    at::Tensor last = *tensor;
    while (last.dim() > 0) last = last.select(0, last.size(0) - 1);
    last.clone();
  } else if (const auto* dict = value.get_if<checkpoint::Dict>()) {
    for (const auto& [key, item] : *dict) touch(item);
  } else if (const auto* items = value.items()) {
    for (const auto& item : *items) touch(item);
  }
}

// A whole file that is read as a checkpoint.
inline int read_as_checkpoint(std::span<const uint8_t> bytes) {
  static FileInMemory file;
  file.hold(bytes);
  reads(file.path(), [] { touch(checkpoint::read_checkpoint(file.path())); });
  return 0;
}

}  // namespace lockstep::fuzz
