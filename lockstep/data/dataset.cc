#include "lockstep/data/dataset.h"

#include "lockstep/base/error.h"

namespace lockstep::data {

const at::Tensor& Batch::operator[](const std::string& name) const {
  const auto found = more.find(name);
  if (found != more.end()) return found->second;
  std::string names;
  for (const auto& [known, tensor] : more) names += cat(names.empty() ? "" : ", ", known);
  throw ConfigError("the batch has no tensor ", name, "; ",
                    names.empty() ? "it has data and target alone" : cat("beside data and target it has ", names));
}

void check_indices(std::span<const int64_t> indices, int64_t size) {
  for (const int64_t index : indices) {
    if (index < 0 || index >= size) throw BugError("sample ", index, " was asked of a data set of ", size, " samples");
  }
}

}  // namespace lockstep::data
