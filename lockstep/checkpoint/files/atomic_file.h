// Atomic replacement of a file: readers find the whole old file or the whole new one, even after a power failure.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/files/byte_sink.h"

namespace lockstep::checkpoint {

// The IoError of a full disk, on which somebody may make room.
class DiskFullError : public IoError {
 public:
  using IoError::IoError;
};

// The temporary file beside `path` that is written first. A killed writer may leave it behind; the next one overwrites
// it.
std::string temporary_name(const std::string& path);

// Replaces `path`: `write` fills a temporary file in the same folder, which is fsynced and renamed; then the folder is
// fsynced. If any of this fails, or `write` throws, the temporary file is removed, `path` stays as it was, and the
// error propagates. IoError, or DiskFullError, names the file, the bytes written so far and what to do. A second writer
// of the same path gets an IoError while the first is at work. `on_progress` is called each time that some megabytes
// have been taken.
void write_atomically(const std::string& path, const std::function<void(ByteSink&)>& write,
                      const std::function<void()>& on_progress = {});

// The same for the first `bytes` of `pages`, whole pages of memory. They go to the disk past the page cache where the
// file system has O_DIRECT.
void write_atomically(const std::string& path, std::span<const char> pages, size_t bytes,
                      const std::function<void()>& on_progress = {});

// Replaces `path` atomically by a symbolic link to `target`, a path relative to the link's folder. Throws IoError.
void link_atomically(const std::string& target, const std::string& path);

}  // namespace lockstep::checkpoint
