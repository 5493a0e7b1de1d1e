#include "lockstep/datasets/open_images.h"

#include <sys/stat.h>

#include "lockstep/base/error.h"
#include "lockstep/datasets/augment.h"
#include "lockstep/datasets/cifar.h"
#include "lockstep/datasets/class_folders.h"
#include "lockstep/datasets/files/kind.h"
#include "lockstep/datasets/found_there.h"
#include "lockstep/datasets/image_dataset.h"

namespace lockstep::datasets {
namespace {

constexpr double kUsualValidation = 10;  // percent

constexpr const char* kLookedFor =
    "looked for train/ and val/ of class folders (train/cats/1.jpg), class folders (cats/1.jpg), and CIFAR's "
    "data_batch_1.bin or train.bin";

data::Splits open_folders(const OpenOptions& options, const std::string& train, const std::string& test) {
  const ImageSetup setup = photograph_setup(options);
  const auto images = class_folders(train, {.on_one_rank = options.on_one_rank});
  data::Splits splits{.train = image_dataset(images, setup, true), .usual_validation = kUsualValidation};
  if (!test.empty()) {
    const auto others = class_folders(test, {.classes = images->class_names(), .on_one_rank = options.on_one_rank});
    splits.test = image_dataset(others, setup, false);
  }
  return splits;
}

data::Splits open_cifar(const OpenOptions& options, Cifar kind) {
  const ImageSetup setup = small_image_setup(options, kCifarSize, cifar_normalize(kind));
  return {.train = image_dataset(cifar(options.path, kind, CifarPart::kTrain), setup, true),
          .test = image_dataset(cifar(options.path, kind, CifarPart::kTest), setup, false)};
}

// The folder beside train/ that a run is tested on; empty if there is none.
std::string test_folder(const std::string& path) {
  for (const char* name : {"val", "validation", "valid", "test"}) {
    struct stat status {};
    const std::string folder = path + "/" + name;
    if (stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) continue;
    if (!list_folders(folder).empty()) return folder;  // ImageNet's test/ has no classes
  }
  return "";
}

}  // namespace

data::Splits open_images(const OpenOptions& options) {
  const std::string& path = options.path;
  switch (kind_of(path)) {
    case Kind::kClassFolders:
      return open_folders(options, path, "");
    case Kind::kTrainAndVal:
      return open_folders(options, path + "/train", test_folder(path));
    case Kind::kCifar10:
      return open_cifar(options, Cifar::k10);
    case Kind::kCifar100:
      return open_cifar(options, Cifar::k100);
    case Kind::kPairs:
      throw DataError(shown(path), ": these are images and their masks (", pair_folders(path).images, "/ and ",
                      pair_folders(path).masks,
                      "/), which `lockstep train unet` takes; images with classes: ", kLookedFor);
    case Kind::kMnist:
      throw DataError(shown(path),
                      ": this is MNIST, which `lockstep train mnist` takes; images with classes: ", kLookedFor);
    default:
      throw DataError(shown(path), ": no images with classes; ", kLookedFor, "; ", found_there(path));
  }
}

}  // namespace lockstep::datasets
