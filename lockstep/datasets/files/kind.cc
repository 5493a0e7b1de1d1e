#include "lockstep/datasets/files/kind.h"

#include <sys/stat.h>

#include <cerrno>
#include <initializer_list>

#include "lockstep/base/error.h"
#include "lockstep/datasets/files/file_errors.h"
#include "lockstep/datasets/files/listing.h"

namespace lockstep::datasets {
namespace {

mode_t type_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0) return status.st_mode & S_IFMT;
  if (is_machines_fault(errno)) throw_file_error(path, "can't be looked at", errno);
  return 0;
}

bool has_folders(const std::string& path) {
  if (!is_folder(path)) return false;
  try {
    return !list_folders(path, [](const std::string&) {}).empty();  // who opens them says what is wrong
  } catch (const DataError&) {
    return false;
  }
}

bool has_any_file(const std::string& path, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (is_file(path + "/" + name)) return true;
  }
  return false;
}

}  // namespace

bool is_file(const std::string& path) { return type_of(path) == S_IFREG; }
bool is_folder(const std::string& path) { return type_of(path) == S_IFDIR; }

PairFolders pair_folders(const std::string& path) {
  PairFolders folders;
  for (const char* name : {"imgs", "images", "train"}) {
    if (folders.images.empty() && is_folder(path + "/" + name)) folders.images = name;
  }
  for (const char* name : {"masks", "train_masks", "labels"}) {
    const bool may_be = name != std::string("labels") || folders.images != "train";  // those lie beside class folders
    if (folders.images.empty() || !folders.masks.empty() || !may_be) continue;
    if (is_folder(path + "/" + name)) folders.masks = name;
  }
  return folders;
}

Kind kind_of(const std::string& path) {
  if (is_file(path)) {
    if (has_ending(path, {"rec"})) return Kind::kRecordIo;
    return has_ending(path, {"json"}) || path.ends_with(".json.gz") ? Kind::kMnist : Kind::kUnknown;
  }
  if (pair_folders(path).found() || pair_folders(path + "/train").found()) return Kind::kPairs;
  if (has_any_file(path, {"train.rec"})) return Kind::kRecordIo;
  if (has_any_file(path, {"manifest.json", "train/manifest.json"})) return Kind::kPacked;
  if (has_any_file(path, {"data_batch_1.bin"})) return Kind::kCifar10;
  if (has_any_file(path, {"train.bin"})) return Kind::kCifar100;
  if (has_any_file(path, {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz", "mnist.json", "mnist.json.gz"})) {
    return Kind::kMnist;
  }
  if (has_folders(path + "/train")) return Kind::kTrainAndVal;
  return has_folders(path) ? Kind::kClassFolders : Kind::kUnknown;
}

}  // namespace lockstep::datasets
