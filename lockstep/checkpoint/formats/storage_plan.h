// The storages that a tree of values needs, and which of their bytes: tensors that overlap share a storage in the file.
// Those that only lie beside each other in one, as the buffers that a program has packed, have one each: a file does
// not tell how a rank or a device lays out its memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// A tensor as a view of one of the plan's storages, counted in elements.
struct StoredView {
  size_t storage = 0;  // index into storages()
  int64_t offset = 0;
};

// Collects the storages of a tree's tensors in the order of their first use: the windows of memory that tensors reach
// together. A .pt file gives a storage one dtype, so tensors of different dtypes over one storage get a storage each.
// CPU tensors are borrowed, not copied: the tree must outlive the plan unchanged. A tensor of the device meta stands
// for one whose bytes come from elsewhere: it has a place, but no bytes().
class StoragePlan {
 public:
  // Throws BugError for a tensor that is undefined or not strided.
  explicit StoragePlan(const Value& root);

  struct Storage {
    at::Tensor tensor;  // any tensor over the storage
    int64_t begin = 0;  // the window, in elements
    int64_t end = 0;
    std::string_view bytes() const;  // throws BugError for one without memory
    int64_t elements() const { return end - begin; }
    uint64_t size() const { return static_cast<uint64_t>(elements()) * tensor.element_size(); }  // of bytes()
    bool has_memory() const { return !tensor.is_meta(); }
    at::ScalarType dtype() const { return tensor.scalar_type(); }
  };
  const std::vector<Storage>& storages() const { return storages_; }

  // The view of a tensor of the tree.
  StoredView view(const at::Tensor& tensor) const;

 private:
  using Identity = std::pair<const void*, at::ScalarType>;  // of a storage in memory
  struct Window {
    int64_t begin = 0, end = 0;    // in elements
    std::optional<size_t> number;  // index into storages()
  };
  static void collect(const Value& value, std::vector<at::Tensor>& tensors);
  static Identity identity_of(const at::Tensor& tensor);
  static void merge(std::vector<Window>& windows);
  void add_window(const at::Tensor& tensor);
  size_t window_of(const at::Tensor& tensor) const;
  const at::Tensor& on_cpu(const at::Tensor& tensor) const;

  std::vector<Storage> storages_;
  std::map<Identity, std::vector<Window>> windows_;  // by their begins
  std::map<const void*, at::Tensor> copies_;         // CPU copies of tensors that lie elsewhere, by their TensorImpl
};

}  // namespace lockstep::checkpoint
