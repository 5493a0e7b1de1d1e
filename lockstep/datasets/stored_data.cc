#include "lockstep/datasets/stored_data.h"

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/datasets/cifar.h"
#include "lockstep/datasets/class_folders.h"
#include "lockstep/datasets/found_there.h"
#include "lockstep/datasets/packed_images.h"
#include "lockstep/datasets/pairs.h"
#include "lockstep/datasets/record_io_images.h"

namespace lockstep::datasets {
namespace {

std::vector<StoredPart> folder_parts(const std::string& path, const Layout& layout, const StoredOptions& options) {
  ClassFoldersOptions folders{.on_one_rank = options.on_one_rank, .on_problem = options.on_problem};
  if (layout.one_part) return {{"", class_folders(path, folders)}};
  std::vector<StoredPart> parts = {{"train", class_folders(path + "/train", folders)}};
  if (layout.test.empty()) return parts;
  folders.classes = parts[0].images->class_names();
  parts.push_back({layout.test, class_folders(path + "/" + layout.test, folders)});
  return parts;
}

std::vector<StoredPart> packed_parts(const std::string& path, const Layout& layout) {
  if (layout.one_part) return {{"", packed_images(path)}};
  std::vector<StoredPart> parts = {{"train", packed_images(path + "/train")}};
  if (layout.test.empty()) return parts;
  parts.push_back({layout.test, packed_images(path + "/" + layout.test, parts[0].images->class_names())});
  if (parts[1].images->has_masks() != parts[0].images->has_masks()) {
    throw DataError(shown(path), ": one part has masks, and the other has none; pack both from one data set");
  }
  return parts;
}

std::vector<StoredPart> record_io_parts(const std::string& path, const Layout& layout, const StoredOptions& options) {
  RecordIoOptions records{.on_one_rank = options.on_one_rank};
  if (layout.one_part) return {{"", record_io_images(path, records)}};
  std::vector<StoredPart> parts = {{"train", record_io_images(path + "/train.rec", records)}};
  if (layout.test.empty()) return parts;
  records.classes = std::ssize(parts[0].images->class_names());
  const std::string name = layout.test.substr(0, layout.test.rfind('.'));
  parts.push_back({name, record_io_images(path + "/" + layout.test, records)});
  return parts;
}

std::vector<StoredPart> cifar_parts(const std::string& path, Cifar kind) {
  return {{"train", cifar(path, kind, CifarPart::kTrain)}, {"test", cifar(path, kind, CifarPart::kTest)}};
}

std::vector<StoredPart> pair_parts(const std::string& path, const Layout& layout, const StoredOptions& options) {
  const auto part = [&](const std::string& name) {
    const std::string folder = name.empty() ? path : path + "/" + name;
    return StoredPart{name,
                      pair_files(find_pairs(folder, {options.on_one_rank, options.on_problem}), options.on_problem)};
  };
  if (layout.one_part) return {part("")};
  std::vector<StoredPart> parts = {part("train")};
  if (!layout.test.empty()) parts.push_back(part(layout.test));
  return parts;
}

}  // namespace

StoredData open_stored(const std::string& path, const StoredOptions& options) {
  return open_stored(path, find_layout(path, options.on_one_rank), options);
}

StoredData open_stored(const std::string& path, const Layout& layout, const StoredOptions& options) {
  const Kind form = layout.kind;
  switch (form) {
    case Kind::kClassFolders:
    case Kind::kTrainAndVal:
      return {form, Packed::kImages, folder_parts(path, layout, options)};
    case Kind::kPairs:
      return {form, Packed::kMasks, pair_parts(path, layout, options)};
    case Kind::kPacked:
      return {form, layout.packed, packed_parts(path, layout)};
    case Kind::kRecordIo:
      return {form, Packed::kImages, record_io_parts(path, layout, options)};
    case Kind::kCifar10:
      return {form, Packed::kCifar10, cifar_parts(path, Cifar::k10)};
    case Kind::kCifar100:
      return {form, Packed::kCifar100, cifar_parts(path, Cifar::k100)};
    case Kind::kMnist:
      throw DataError(shown(path), ": this is MNIST, which `lockstep train mnist` reads as it is");
    case Kind::kUnknown:
      break;
  }
  throw DataError(shown(path),
                  ": no images; looked for class folders (cats/1.jpg), train/ and val/ of them, images and masks "
                  "(imgs/ and masks/), packed data (manifest.json), train.rec, and CIFAR's data_batch_1.bin or "
                  "train.bin; ",
                  found_there(path));
}

}  // namespace lockstep::datasets
