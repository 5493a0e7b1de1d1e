// Scopes that turn libtorch's autocast on and restore it at their end.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/ScalarType.h>

#include <cstdint>

#include "lockstep/amp/opt_level.h"

namespace lockstep::amp {

// Within this scope the operations of the policy's level compute in 16 bits on devices of this type. A level without
// casts changes nothing. Forward and loss belong inside, backward does not. This thread only; scopes nest.
class AutocastScope {
 public:
  explicit AutocastScope(const Policy& policy, c10::DeviceType device = c10::DeviceType::CPU);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  bool active_;
  c10::DeviceType device_;
  bool was_enabled_ = false;
  c10::ScalarType previous_dtype_ = c10::ScalarType::BFloat16;
};

// The number of scopes with casts that this thread has opened, which tells whether a function has computed in one.
uint64_t autocast_scopes_opened();

// Keeps the weights that autocast has cast until the outermost scope of either kind ends. Put around a training step,
// it lets the step's lanes share one cast of each weight. The weights must not change within it, nor be used without
// gradients.
class CastCacheScope {
 public:
  CastCacheScope();
  ~CastCacheScope();
  CastCacheScope(const CastCacheScope&) = delete;
  CastCacheScope& operator=(const CastCacheScope&) = delete;
};

}  // namespace lockstep::amp
