#include "lockstep/parallel/bucket_plan.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace lockstep::parallel {
namespace {

using Kind = std::pair<c10::ScalarType, c10::Device>;

// Devices have no order of their own.
struct Before {
  bool operator()(const Kind& a, const Kind& b) const {
    return std::tuple(a.first, a.second.type(), a.second.index()) <
           std::tuple(b.first, b.second.type(), b.second.index());
  }
};

}  // namespace

std::vector<std::vector<size_t>> plan_buckets(std::span<const ParameterSize> parameters, const BucketOptions& options) {
  struct Open {
    std::vector<size_t> members;
    int64_t bytes = 0;
  };
  std::vector<std::vector<size_t>> buckets;
  std::map<Kind, Open, Before> open;
  const bool by_size = std::none_of(parameters.begin(), parameters.end(), [](const auto& each) { return each.closes; });
  for (size_t i = parameters.size(); i-- > 0;) {
    const Kind kind(parameters[i].dtype, parameters[i].device);
    Open& bucket = open[kind];
    bucket.members.push_back(i);
    bucket.bytes += parameters[i].bytes;
    const double cap = (buckets.empty() ? options.first_bucket_mb : options.bucket_mb) * (1 << 20);
    if (by_size ? static_cast<double>(bucket.bytes) < cap : !parameters[i].closes) continue;
    buckets.push_back(std::move(bucket.members));
    open.erase(kind);
  }
  for (auto& [kind, bucket] : open) buckets.push_back(std::move(bucket.members));
  // By the parameter that backward reaches last: the one that fills the bucket.
  std::sort(buckets.begin(), buckets.end(), [](const auto& a, const auto& b) { return a.back() > b.back(); });
  return buckets;
}

}  // namespace lockstep::parallel
