// What the fuzzing programs share. A finding is whatever ends one of them: a crash, a sanitizer's report, any exception
// but a DataError, and a DataError that isn't one short line which begins with the file's name.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/shared_memory.h"
#include "lockstep/base/shown.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace lockstep::fuzz {

[[noreturn]] inline void finding(const std::string& what) {
  std::fprintf(stderr, "finding: %s\n", what.c_str());
  std::abort();
}

inline void check(bool holds, const std::string& what) {
  if (!holds) finding(what);
}

// A file in memory, which readers open by its path. Holds one content at a time.
class FileInMemory {
 public:
  FileInMemory() : file_(memfd_create("fuzz", MFD_CLOEXEC)), path_(cat("/proc/self/fd/", file_.get())) {}

  const std::string& path() const { return path_; }
  void hold(std::span<const uint8_t> bytes) {
    const bool written = ftruncate(file_.get(), 0) == 0 &&
                         pwrite(file_.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
    check(written, "the file in memory can't be written");
  }

 private:
  Descriptor file_;
  std::string path_;
};

// Calls read(), and returns whether it threw no DataError.
template <typename Read>
bool reads(const std::string& name, const Read& read) {
  constexpr size_t kMostLine = 1000;
  try {
    read();
    return true;
  } catch (const DataError& error) {
    const std::string line = error.what();
    const bool is_right = line.starts_with(name + ": ") && line == shown(line) && line.size() < kMostLine;
    check(is_right, "an error's line: " + shown(line));
    return false;
  }
}

// One of libFuzzer's changes, after which `repair(data, size)` puts checksums right, but for every fourth file.
template <typename Repair>
size_t mutate(uint8_t* data, size_t size, size_t most, unsigned seed, const Repair& repair) {
  const size_t changed = LLVMFuzzerMutate(data, size, most);
  if (seed % 4 != 0) repair(std::span(data, changed));
  return changed;
}

}  // namespace lockstep::fuzz
