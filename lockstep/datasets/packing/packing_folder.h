// The folder that is packed into. It gets its name once it is whole, so that what an interrupted packing leaves is
// never taken for packed data.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/base/shared_memory.h"

namespace lockstep::datasets {

// Gives two folders each other's name at once. False, with errno, if the file system can't do that.
bool exchange_names(const std::string& one, const std::string& other);

struct PackingFolderOptions {
  bool overwrite = false;              // replace packed data that are there
  std::vector<std::string> data = {};  // the folders and files that are packed, of which nothing may be removed
  std::function<bool(const std::string&, const std::string&)> exchange = exchange_names;
};

// One process at a time. Its name until it is whole is OUT.packing: a packing that is killed leaves that behind, and
// the next one removes it. Data that are replaced keep the name OUT until then; where the file system can't exchange
// names they are OUT.replaced for a moment.
class PackingFolder {
 public:
  // Throws ConfigError if something is at `out` that is no empty folder, or with `overwrite` anything that is no packed
  // data; if `out` lies in the data or they in what is removed; if `out` is a mount point, another process packs there,
  // or OUT.replaced is in the way; IoError. Nothing is removed then.
  explicit PackingFolder(const std::string& out, PackingFolderOptions options = {});
  PackingFolder(const PackingFolder&) = delete;
  PackingFolder& operator=(const PackingFolder&) = delete;
  ~PackingFolder();  // removes what is not whole

  const std::string& path() const { return packing_; }  // where to write
  const std::string& out() const { return out_; }       // absolute, without links

  // Makes the folder of a part, "train", below path(), and returns its path; path() itself for "".
  std::string part(const std::string& name) const;

  // Brings all names to the disk, gives the folder its own, and removes the data that had it. Where somebody has put
  // other files among these meanwhile, it removes none of them, and returns a line that says where they are; else an
  // empty text. Throws IoError; the data that were there are then at OUT still, or where the error says.
  std::string finish();

 private:
  void check_out();
  void lock();
  void clear() const;
  std::string replace() const;
  std::string remove_replaced(const std::string& folder) const;

  PackingFolderOptions options_;
  std::string out_, packing_, replaced_;
  bool replaces_ = false, whole_ = false;
  Descriptor lock_, lock_of_replaced_;
};

}  // namespace lockstep::datasets
