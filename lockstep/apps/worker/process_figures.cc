#include "process_figures.h"

#include <sys/resource.h>

#include <fstream>

namespace lockstep::worker {

double megabytes_in(const char* path, const std::string& key) {
  std::ifstream file(path);
  double kilobytes = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(key)) kilobytes = std::stod(line.substr(key.size()));
  }
  return kilobytes * 1024 / 1e6;
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace lockstep::worker
