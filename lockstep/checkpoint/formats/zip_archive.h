// Reads untrusted zip archives, by libzip and within bounds of our own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "lockstep/checkpoint/formats/file_reader.h"

namespace lockstep::checkpoint {

// An archive opened for reading. One thread. Every method throws DataError that names the file and the entry.
class ZipArchive {
 public:
  // What is known of entries when the archive is opened: what its directory says, or that the headers before their
  // contents say the same, which costs a read for each.
  enum class Headers { kOfDirectory, kCompared };

  // Opens the file of a descriptor, whatever its name stands for by now. Throws for an archive whose directory is
  // missing or damaged, and for names that are not unique or lead out of the archive.
  ZipArchive(std::string path, const InputFile& file, Headers headers = Headers::kOfDirectory);
  // The same by name. Throws as open_input(), too.
  explicit ZipArchive(const std::string& path, Headers headers = Headers::kOfDirectory)
      : ZipArchive(path, open_input(path), headers) {}
  ~ZipArchive();

  const std::vector<std::string>& names() const { return names_; }
  bool contains(const std::string& name) const { return positions_.contains(name); }
  uint64_t size(const std::string& name) const;  // bytes when unpacked

  // Reads a whole entry of at most `most` bytes, and checks its checksum.
  std::string read(const std::string& name, uint64_t most);
  // Reads an entry into memory of exactly its size, and checks its checksum.
  void read_into(const std::string& name, void* memory, uint64_t bytes);
  // Checks an entry's checksum, without holding the whole entry in memory.
  void check(const std::string& name);

 private:
  struct Handle;
  uint64_t position(const std::string& name) const;
  void check_packing(const std::string& name);
  using Take = std::function<char*(uint64_t done, uint64_t& bytes)>;  // where the next bytes go; it may ask for fewer
  void read_through(const std::string& name, uint64_t bytes, const Take& take);

  std::string path_;
  std::unique_ptr<Handle> handle_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, uint64_t> positions_;
  uint64_t unpacked_ = 0;  // bytes of compressed entries read so far
};

}  // namespace lockstep::checkpoint
