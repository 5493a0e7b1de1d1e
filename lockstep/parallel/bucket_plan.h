// Which parameters' gradients are reduced together: a pure function of the parameters' sizes.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::parallel {

struct BucketOptions {
  // 2^20 bytes; DistributedDataParallel's bucket_cap_mb, which is 25 there: what is folded soon is still in a cache.
  double bucket_mb = 8;
  double first_bucket_mb = 1;  // the first bucket is small, so that communication starts early
  // kBFloat16 or kHalf: fp32 gradients are added and travel rounded to it (comm::FoldOptions)
  std::optional<c10::ScalarType> wire = {};
};

struct ParameterSize {
  int64_t bytes;
  c10::ScalarType dtype;
  c10::Device device{c10::DeviceType::CPU};
};

// Buckets of parameter numbers. Backward reaches parameters in about the reverse order of their registration, so that
// is the order within buckets and of buckets; a bucket is closed as soon as it has reached its size, and holds one
// dtype on one device.
std::vector<std::vector<size_t>> plan_buckets(std::span<const ParameterSize> parameters, const BucketOptions& options);

}  // namespace lockstep::parallel
