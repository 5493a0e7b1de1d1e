#include "lockstep/amp/autocast.h"

#include <ATen/autocast_mode.h>

#include <atomic>

#include "lockstep/amp/half_convolution.h"

namespace lockstep::amp {

namespace {

// The dtype of the weights in autocast's cache, which all threads share. A lane's thread that emptied it would leave
// the lanes that have begun with two casts of one weight, whose gradients are rounded apart.
std::atomic<c10::ScalarType> cached_dtype = c10::ScalarType::Undefined;

thread_local uint64_t opened = 0;

void hold_casts_to(c10::ScalarType dtype) {
  if (cached_dtype.exchange(dtype) != dtype) at::autocast::clear_cache();
}

}  // namespace

CastCacheScope::CastCacheScope() { at::autocast::increment_nesting(); }

CastCacheScope::~CastCacheScope() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
}

AutocastScope::AutocastScope(const Policy& policy, c10::DeviceType device) : active_(policy.cast_ops), device_(device) {
  if (!active_) return;
  ++opened;
  if (policy.dtype == at::kHalf) widen_slow_half_convolutions();
  was_enabled_ = at::autocast::is_autocast_enabled(device_);
  previous_dtype_ = at::autocast::get_autocast_dtype(device_);
  hold_casts_to(policy.dtype);
  at::autocast::set_autocast_dtype(device_, policy.dtype);
  at::autocast::set_autocast_enabled(device_, true);
  at::autocast::increment_nesting();
}

AutocastScope::~AutocastScope() {
  if (!active_) return;
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  if (was_enabled_) hold_casts_to(previous_dtype_);
  at::autocast::set_autocast_enabled(device_, was_enabled_);
  at::autocast::set_autocast_dtype(device_, previous_dtype_);
}

uint64_t autocast_scopes_opened() { return opened; }

}  // namespace lockstep::amp
