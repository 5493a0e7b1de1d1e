#include "lockstep/parallel/ddp_options.h"

#include <algorithm>

#include "lockstep/base/error.h"

namespace lockstep::parallel {

void DdpOptions::check() const {
  if (comm_hook != nullptr && buckets.wire) {
    throw ConfigError("DistributedDataParallel: a wire type and the hook ", comm_hook->name(),
                      "; give only one of them");
  }
  if (comm_hook != nullptr && allreduce_always_fp32) {
    throw ConfigError("DistributedDataParallel: allreduce_always_fp32 and the hook ", comm_hook->name(),
                      "; give only one of them");
  }
  if (!(gradient_predivide_factor > 0)) {
    throw ConfigError("DistributedDataParallel: gradient_predivide_factor is ", gradient_predivide_factor,
                      "; it is above 0");
  }
  if (!(buckets.bucket_mb > 0) || !(buckets.first_bucket_mb > 0)) {
    throw ConfigError("DistributedDataParallel: buckets of ", buckets.bucket_mb, " MB, the first of ",
                      buckets.first_bucket_mb, " MB; they are above 0");
  }
}

bool DdpOptions::closes_bucket(const at::Tensor& parameter) const {
  const void* const here = parameter.const_data_ptr();  // also of a complex one's real view
  return std::any_of(bucket_ends.begin(), bucket_ends.end(),
                     [&](const auto& end) { return end.const_data_ptr() == here; });
}

std::optional<c10::ScalarType> DdpOptions::wire() const { return comm_hook ? comm_hook->wire() : buckets.wire; }

}  // namespace lockstep::parallel
