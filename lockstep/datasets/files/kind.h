// What kind of data set lies at a path.
#pragma once

#include <array>
#include <string>

namespace lockstep::datasets {

enum class Kind {
  kUnknown,
  kClassFolders,  // cats/1.jpg, dogs/2.jpg
  kTrainAndVal,   // train/ and mostly val/, each of class folders
  kPairs,         // imgs/ and masks/, or their other names; or train/ with these
  kPacked,        // manifest.json, or train/manifest.json
  kRecordIo,      // x.rec, or train.rec
  kCifar10,       // data_batch_1.bin …
  kCifar100,      // train.bin
  kMnist,         // idx files or JSON
};

// The names that the part to test on may have; the first that is there is meant.
constexpr std::array<const char*, 4> kTestParts = {"val", "validation", "valid", "test"};

// Whether a file or a folder is there; links count as what they lead to. Throws IoError where the machine failed.
bool is_file(const std::string& path);
bool is_folder(const std::string& path);

// Looks at names alone. Throws IoError where the machine failed; what is missing or unreadable is kUnknown.
Kind kind_of(const std::string& path);

// The names that the folders of images and of their masks may have, "" for none: {"imgs", "masks"}.
struct PairFolders {
  std::string images, masks;
  bool found() const { return !masks.empty(); }
};
PairFolders pair_folders(const std::string& path);

}  // namespace lockstep::datasets
