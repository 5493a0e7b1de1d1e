#include "lockstep/amp/autocast.h"

#include <ATen/autocast_mode.h>

namespace lockstep::amp {
namespace {

constexpr auto kCpu = at::DeviceType::CPU;

}  // namespace

CastCacheScope::CastCacheScope() { at::autocast::increment_nesting(); }

CastCacheScope::~CastCacheScope() {
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
}

AutocastScope::AutocastScope(const Policy& policy) : active_(policy.casts()) {
  if (!active_) return;
  was_enabled_ = at::autocast::is_autocast_enabled(kCpu);
  previous_dtype_ = at::autocast::get_autocast_dtype(kCpu);
  dtype_ = policy.dtype;
  // What an outer scope has cast to another dtype must not be taken for ours.
  if (dtype_ != previous_dtype_) at::autocast::clear_cache();
  at::autocast::set_autocast_dtype(kCpu, policy.dtype);
  at::autocast::set_autocast_enabled(kCpu, true);
  at::autocast::increment_nesting();
}

AutocastScope::~AutocastScope() {
  if (!active_) return;
  if (at::autocast::decrement_nesting() == 0 || dtype_ != previous_dtype_) at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(kCpu, was_enabled_);
  at::autocast::set_autocast_dtype(kCpu, previous_dtype_);
}

}  // namespace lockstep::amp
