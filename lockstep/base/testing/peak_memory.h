// For tests: the most memory that this process has had at a time.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

namespace lockstep::testing_support {

// Sanitizers keep what is freed, and take memory of their own.
constexpr bool kMeasuresMemory = !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);

// Begins to measure when it is made. The kernel counts pages that were written.
class PeakMemory {
 public:
  PeakMemory() {
    std::ofstream("/proc/self/clear_refs") << "5";  // forgets the peak so far
    begin_ = of_status("VmRSS:");
  }
  // By how much the process was larger at its largest, in MiB.
  int64_t growth_mib() const { return (of_status("VmHWM:") - begin_) / 1024; }

 private:
  static int64_t of_status(const std::string& row) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      if (int64_t kib = 0; word == row && status >> kib) return kib;
    }
    return 0;
  }
  int64_t begin_ = 0;
};

}  // namespace lockstep::testing_support
