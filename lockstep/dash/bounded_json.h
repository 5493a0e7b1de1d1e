// JSON from files that anybody may have written.
#pragma once

#include <string_view>

#include "lockstep/track/metric_sink.h"

namespace lockstep::dash {

constexpr size_t kMostJsonBytes = 1 << 20;

// The value of a text; a discarded one for what is no JSON, is longer than kMostJsonBytes, or lies deeper than records
// and results do.
inline track::Record bounded_json(std::string_view text) {
  constexpr int kMostDepth = 16;
  if (text.size() > kMostJsonBytes) return track::Record(track::Record::value_t::discarded);
  bool too_deep = false;
  const auto keep = [&too_deep](int depth, track::Record::parse_event_t /*event*/, track::Record& /*parsed*/) {
    too_deep = too_deep || depth > kMostDepth;
    return !too_deep;
  };
  track::Record value = track::Record::parse(text, keep, /*allow_exceptions=*/false);
  return too_deep ? track::Record(track::Record::value_t::discarded) : value;
}

}  // namespace lockstep::dash
