// Reads untrusted zip archives, by libzip and within bounds of our own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace lockstep::checkpoint {

// An archive opened for reading. One thread. Every method throws DataError that names the file and the entry.
class ZipArchive {
 public:
  // Throws for an archive whose directory is missing or damaged, and for names that are not unique or lead out of the
  // archive.
  explicit ZipArchive(std::string path);
  ~ZipArchive();

  const std::vector<std::string>& names() const { return names_; }
  bool contains(const std::string& name) const { return positions_.contains(name); }
  uint64_t size(const std::string& name) const;  // bytes when unpacked

  // Reads a whole entry of at most `most` bytes, and checks its checksum.
  std::string read(const std::string& name, uint64_t most);
  // Reads an entry into memory of exactly its size, and checks its checksum.
  void read_into(const std::string& name, void* memory, uint64_t bytes);

 private:
  struct Handle;
  uint64_t position(const std::string& name) const;
  void check_packing(const std::string& name);

  std::string path_;
  std::unique_ptr<Handle> handle_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint64_t> positions_;
  uint64_t unpacked_ = 0;  // bytes of compressed entries read so far
};

}  // namespace lockstep::checkpoint
