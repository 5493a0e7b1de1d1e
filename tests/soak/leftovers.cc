#include "leftovers.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lockstep/base/text.h"

namespace lockstep::soak {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

bool holds_open(const fs::path& process, const FileIds& files) {
  std::error_code none;  // the process may end while we look
  for (fs::directory_iterator entry(process / "fd", none), end; !none && entry != end; entry.increment(none)) {
    struct stat file {};
    if (stat(entry->path().c_str(), &file) == 0 && files.count({file.st_dev, file.st_ino}) > 0) return true;
  }
  return false;
}

// "7f00-7f01 rw-s 00000000 00:01 1234  /memfd:lockstep-board (deleted)"
bool holds_mapped(const fs::path& process, const FileIds& files) {
  std::istringstream lines(read_file(process / "maps"));
  for (std::string line; std::getline(lines, line);) {
    if (line.find("/memfd:lockstep-") == std::string::npos) continue;
    std::istringstream words(line);
    std::string skipped;
    unsigned major = 0, minor = 0;
    char colon = 0;
    ino_t inode = 0;
    words >> skipped >> skipped >> skipped >> std::hex >> major >> colon >> minor >> std::dec >> inode;
    if (files.count({makedev(major, minor), inode}) > 0) return true;
  }
  return false;
}

}  // namespace

FileIds files_of(const NodeMemory& memory) {
  FileIds ids;
  const auto add = [&](const Descriptor& fd) {
    struct stat file {};
    if (fstat(fd.get(), &file) == 0) ids.insert({file.st_dev, file.st_ino});
  };
  add(memory.board);
  add(memory.comm);
  for (const auto& pool : memory.pools) add(pool);
  return ids;
}

std::string leftovers(const std::string& environment_entry, const FileIds& files) {
  std::string found;
  std::error_code none;
  for (const auto& process : fs::directory_iterator("/proc")) {
    const std::string name = process.path().filename();
    if (!std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) continue;
    if (read_file(process.path() / "environ").find(environment_entry + '\0') != std::string::npos) {
      found += cat("process ", name, " still runs\n");
    }
    if (holds_open(process.path(), files)) found += cat("process ", name, " holds a file open\n");
    if (holds_mapped(process.path(), files)) found += cat("process ", name, " maps a file\n");
  }
  for (fs::directory_iterator entry("/dev/shm", none), end; !none && entry != end; entry.increment(none)) {
    if (entry->path().filename().string().starts_with("lockstep")) found += entry->path().string() + '\n';
  }
  return found;
}

int64_t resident_bytes() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

}  // namespace lockstep::soak
