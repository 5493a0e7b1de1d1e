// Whether a tensor that a file describes lies inside the storage that it names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

// All counted in elements.
struct TensorGeometry {
  int64_t offset = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
};

// What is wrong with the geometry over a storage of so many elements; empty if nothing is. No number makes it overflow.
std::string geometry_fault(const TensorGeometry& geometry, int64_t storage_elements);

// Elements of a geometry without fault.
int64_t element_count(const TensorGeometry& geometry);

// The element after the last one that a geometry without fault reaches; its offset if it has no elements.
int64_t element_end(const TensorGeometry& geometry);

}  // namespace lockstep::checkpoint
