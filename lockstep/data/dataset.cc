#include "lockstep/data/dataset.h"

#include "lockstep/base/error.h"

namespace lockstep::data {

void check_indices(std::span<const int64_t> indices, int64_t size) {
  for (const int64_t index : indices) {
    if (index < 0 || index >= size) throw BugError("sample ", index, " was asked of a data set of ", size, " samples");
  }
}

}  // namespace lockstep::data
