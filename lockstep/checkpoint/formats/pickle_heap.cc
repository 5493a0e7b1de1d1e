#include "lockstep/checkpoint/formats/pickle_heap.h"

#include <utility>

#include "lockstep/checkpoint/formats/byte_cursor.h"

namespace lockstep::checkpoint {
namespace {

// What libtorch allocates for a tensor and for a storage, and what the source of storages keeps about one.
constexpr uint64_t kTensorBytes = 272;
constexpr uint64_t kStorageBytes = 320;
constexpr int64_t kInlineDimensions = 5;  // of a tensor

template <typename T>
uint32_t add_to(std::vector<T>& vector, T item, MemoryBudget& budget) {
  budget.push(vector, std::move(item));
  return static_cast<uint32_t>(vector.size() - 1);
}

}  // namespace

ContainerRef Heap::add(Container::Kind kind, std::span<const Item> items) {
  budget.charge(block_bytes(items.size_bytes()));
  return {add_to(containers, Container{kind, {items.begin(), items.end()}}, budget)};
}

void Heap::append(Container& container, std::span<const Item> items) {
  budget.charge_growth(container.items, items.size());
  container.items.insert(container.items.end(), items.begin(), items.end());
}

TensorRef Heap::add(at::Tensor tensor) {
  const int64_t outside = tensor.dim() > kInlineDimensions ? tensor.dim() : 0;
  budget.charge(kTensorBytes + block_bytes(2 * sizeof(int64_t) * static_cast<uint64_t>(outside)));
  return {add_to(tensors, std::move(tensor), budget)};
}

StorageRef Heap::add(HeapStorage storage) {
  budget.charge(kStorageBytes);
  return {add_to(storages, std::move(storage), budget)};
}

NumpyDtypeRef Heap::add(const NumpyDtype& dtype) { return {add_to(numpy_dtypes, dtype, budget)}; }
NumpyArrayRef Heap::add(NumpyArray array) { return {add_to(numpy_arrays, std::move(array), budget)}; }

Unknown Heap::add_unknown(std::string name) {
  budget.charge(text_bytes(name.size()));
  return {add_to(names, std::move(name), budget)};
}

Container* Heap::container(const Item& item, Container::Kind kind) {
  const auto* ref = std::get_if<ContainerRef>(&item);
  return ref != nullptr && containers[ref->index].kind == kind ? &containers[ref->index] : nullptr;
}

}  // namespace lockstep::checkpoint
