#include "lockstep/datasets/files/stamp.h"

#include <sys/stat.h>
#include <time.h>

#include <array>

#include "lockstep/base/xxh3.h"

namespace lockstep::datasets {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kLongestTick = 2 * kSecond;  // FAT's

int64_t ns_of(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }

}  // namespace

int64_t wall_clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return ns_of(now);
}

std::string stamp_of(const std::string& folder, const Listing& listing, int64_t now) {
  Xxh3 all;
  for (const Listed& file : listing) {
    struct stat status {};
    if (stat((folder + "/" + file.name).c_str(), &status) != 0) return "";
    const int64_t changed = ns_of(status.st_ctim);
    if (changed > now - kLongestTick) return "";
    const std::array<int64_t, 5> numbers = {static_cast<int64_t>(status.st_dev), static_cast<int64_t>(status.st_ino),
                                            status.st_size, ns_of(status.st_mtim), changed};
    all.add(file.name.c_str(), file.name.size() + 1);
    all.add(numbers.data(), sizeof numbers);
  }
  return hex(all.value());
}

}  // namespace lockstep::datasets
