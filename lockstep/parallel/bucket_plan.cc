#include "lockstep/parallel/bucket_plan.h"

#include <algorithm>
#include <map>

namespace lockstep::parallel {

std::vector<std::vector<size_t>> plan_buckets(std::span<const ParameterSize> parameters, const BucketOptions& options) {
  struct Open {
    std::vector<size_t> members;
    int64_t bytes = 0;
  };
  std::vector<std::vector<size_t>> buckets;
  std::map<c10::ScalarType, Open> open;
  for (size_t i = parameters.size(); i-- > 0;) {
    Open& bucket = open[parameters[i].dtype];
    bucket.members.push_back(i);
    bucket.bytes += parameters[i].bytes;
    const double cap = (buckets.empty() ? options.first_bucket_mb : options.bucket_mb) * (1 << 20);
    if (static_cast<double>(bucket.bytes) < cap) continue;
    buckets.push_back(std::move(bucket.members));
    open.erase(parameters[i].dtype);
  }
  for (auto& [dtype, bucket] : open) buckets.push_back(std::move(bucket.members));
  // By the parameter that backward reaches last: the one that fills the bucket.
  std::sort(buckets.begin(), buckets.end(), [](const auto& a, const auto& b) { return a.back() > b.back(); });
  return buckets;
}

}  // namespace lockstep::parallel
