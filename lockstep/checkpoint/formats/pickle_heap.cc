#include "lockstep/checkpoint/formats/pickle_heap.h"

#include <utility>

#include "lockstep/checkpoint/formats/byte_cursor.h"

namespace lockstep::checkpoint {
namespace {

constexpr size_t kMaxContainers = 4u << 20;

}  // namespace

ContainerRef Heap::add(Container::Kind kind, std::vector<Item> items) {
  if (containers.size() >= kMaxContainers) throw Fault{cat("more than ", kMaxContainers, " lists and dicts")};
  containers.push_back({kind, std::move(items)});
  return ContainerRef{static_cast<uint32_t>(containers.size() - 1)};
}

Container* Heap::container(const Item& item, Container::Kind kind) {
  const auto* ref = std::get_if<ContainerRef>(&item);
  return ref != nullptr && containers[ref->index].kind == kind ? &containers[ref->index] : nullptr;
}

}  // namespace lockstep::checkpoint
