// What a disk may hold after a power cut: a model of a folder's files that is fed with the calls of a writer.
//
// Bytes are on the disk after an fsync of their file, names after an fsync of their folder. Of all else (writes, in
// pieces of a page; names that were made, removed or renamed) any part may be there and any may not, whatever came
// first. File systems promise more; a save must not need it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "traced.h"

namespace lockstep::faults {

class Disk {
 public:
  // The folder as it is on the disk at first: files and links, all of it durable.
  explicit Disk(const std::string& folder);

  // A call that its writer has made. Calls that failed change nothing.
  void apply(const DiskCall& call);

  // The number of changes that a power cut may each leave out.
  size_t unsettled() const;

  struct Entry {
    enum class Kind { kFile, kLink, kFolder } kind = Kind::kFile;
    std::string content;  // of a file; of a link its target
    bool operator==(const Entry&) const = default;
  };
  using Image = std::map<std::string, Entry>;  // by names below the folder
  // What is there after a power cut that lets those changes through for which `survives` says so: asked once for each,
  // names first and then pieces of writes, each in the order of the calls.
  Image after_power_cut(const std::function<bool(size_t change)>& survives) const;
  // How many of the changes concern names; these are the first ones.
  size_t unsettled_names() const { return names_.size(); }

  // The file that a name stands for now; -1: none. A file keeps its number under other names, and a new one gets
  // another.
  int file(const std::string& name) const;

 private:
  struct Piece {  // of a write; without data the file is cut, or made longer, to `offset` bytes
    uint64_t offset = 0;
    std::string data;
  };
  struct File {
    Entry durable;
    std::vector<Piece> pieces;
  };
  struct NameChange {
    std::string removed;  // "": none
    std::string made;     // "": none
    int file = -1;        // that `made` then stands for
  };
  void write(int file, uint64_t offset, const std::string& data);
  void open(const DiskCall& call);
  void make(const std::string& name, Entry entry);
  void change(const NameChange& change);
  void sync(const std::string& name);

  std::vector<File> files_;
  std::map<std::string, int> durable_, now_;
  std::vector<NameChange> names_;
};

// Makes `folder` anew, with what the disk holds.
void lay_out(const Disk::Image& image, const std::string& folder);

}  // namespace lockstep::faults
