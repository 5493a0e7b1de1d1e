// The check that a tensor which a file describes lies inside its storage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::checkpoint {

// Counted in elements.
struct TensorGeometry {
  int64_t offset = 0;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
};

// Says what is wrong with the geometry over a storage of `storage_elements` elements; empty if nothing is. No input
// makes the computation overflow.
std::string geometry_fault(const TensorGeometry& geometry, int64_t storage_elements);

// The number of elements of a geometry without fault.
int64_t element_count(const TensorGeometry& geometry);

// The element after the last one that a geometry without fault reaches; its offset if it has no elements.
int64_t element_end(const TensorGeometry& geometry);

}  // namespace lockstep::checkpoint
