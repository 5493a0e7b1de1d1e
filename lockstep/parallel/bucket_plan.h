// The bucket plan: which parameters' gradients are reduced together.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::parallel {

struct BucketOptions {
  // The size of a bucket in 2^20 bytes. PyTorch calls it bucket_cap_mb and takes 25; a gradient of a smaller bucket is
  // folded while it is still in a cache.
  double bucket_mb = 8;
  double first_bucket_mb = 1;  // the first bucket is small, so that communication starts early
  // kBFloat16 or kHalf: fp32 gradients are added and travel rounded to this type (comm::FoldOptions).
  std::optional<c10::ScalarType> wire = {};
};

struct ParameterSize {
  int64_t bytes;
  c10::ScalarType dtype;
  c10::Device device{c10::DeviceType::CPU};
  bool closes = false;  // closes its bucket, of whatever size; sizes do not count then for the others either
};

// Returns buckets of parameter numbers; a pure function. Backward reaches parameters in about the reverse order of
// their registration, so buckets and the parameters in them stand in that order. A bucket holds one dtype on one device
// and is closed as soon as it has reached its size.
std::vector<std::vector<size_t>> plan_buckets(std::span<const ParameterSize> parameters, const BucketOptions& options);

}  // namespace lockstep::parallel
