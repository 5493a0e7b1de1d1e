#include "lockstep/datasets/open_images.h"

#include <sys/stat.h>

#include "lockstep/base/error.h"
#include "lockstep/datasets/augment.h"
#include "lockstep/datasets/cifar.h"
#include "lockstep/datasets/class_folders.h"
#include "lockstep/datasets/files/kind.h"
#include "lockstep/datasets/found_there.h"
#include "lockstep/datasets/image_dataset.h"
#include "lockstep/datasets/packed_images.h"

namespace lockstep::datasets {
namespace {

constexpr double kUsualValidation = 10;  // percent

constexpr const char* kLookedFor =
    "looked for train/ and val/ of class folders (train/cats/1.jpg), class folders (cats/1.jpg), packed data "
    "(manifest.json), train.rec, and CIFAR's data_batch_1.bin or train.bin";

using Source = std::shared_ptr<const ImageSource>;

// A test part may be null.
data::Splits photographs(const OpenOptions& options, const Source& train, const Source& test) {
  const ImageSetup setup = photograph_setup(options);
  return {.train = image_dataset(train, setup, true),
          .test = test == nullptr ? nullptr : image_dataset(test, setup, false),
          .usual_validation = kUsualValidation};
}

// The test part beside train/ or, with an ending, beside train.rec; empty if there is none.
std::string test_part(const std::string& path, const std::string& ending) {
  for (const char* name : {"val", "validation", "valid", "test"}) {
    const std::string part = path + "/" + name + ending;
    struct stat status {};
    if (stat(part.c_str(), &status) == 0 && S_ISDIR(status.st_mode) == ending.empty()) return part;
  }
  return "";
}

data::Splits open_folders(const OpenOptions& options, const std::string& train, const std::string& test) {
  const Source images = class_folders(train, {.on_one_rank = options.on_one_rank});
  Source others;
  if (!test.empty() && !list_folders(test).empty()) {  // ImageNet's test/ has no classes
    others = class_folders(test, {.classes = images->class_names(), .on_one_rank = options.on_one_rank});
  }
  return photographs(options, images, others);
}

data::Splits open_packed(const OpenOptions& options) {
  const std::string& path = options.path;
  struct stat status {};
  if (stat((path + "/manifest.json").c_str(), &status) == 0) return photographs(options, packed_images(path), nullptr);
  const Source train = packed_images(path + "/train");
  const std::string test = test_part(path, "");
  return photographs(options, train, test.empty() ? nullptr : packed_images(test, train->class_names()));
}

data::Splits open_record_io(const OpenOptions& options) {
  const std::string& path = options.path;
  struct stat status {};
  const bool one_file = stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
  const Source train = record_io_images(one_file ? path : path + "/train.rec", {.on_one_rank = options.on_one_rank});
  const std::string test = one_file ? "" : test_part(path, ".rec");
  if (test.empty()) return photographs(options, train, nullptr);
  const auto classes = std::ssize(train->class_names());
  return photographs(options, train, record_io_images(test, {.classes = classes, .on_one_rank = options.on_one_rank}));
}

data::Splits open_cifar(const OpenOptions& options, Cifar kind) {
  const ImageSetup setup = small_image_setup(options, kCifarSize, cifar_normalize(kind));
  return {.train = image_dataset(cifar(options.path, kind, CifarPart::kTrain), setup, true),
          .test = image_dataset(cifar(options.path, kind, CifarPart::kTest), setup, false)};
}

}  // namespace

data::Splits open_images(const OpenOptions& options) {
  const std::string& path = options.path;
  switch (kind_of(path)) {
    case Kind::kClassFolders:
      return open_folders(options, path, "");
    case Kind::kTrainAndVal:
      return open_folders(options, path + "/train", test_part(path, ""));
    case Kind::kPacked:
      return open_packed(options);
    case Kind::kRecordIo:
      return open_record_io(options);
    case Kind::kCifar10:
      return open_cifar(options, Cifar::k10);
    case Kind::kCifar100:
      return open_cifar(options, Cifar::k100);
    case Kind::kPairs:
      throw DataError(shown(path),
                      ": these are images and their masks, which `lockstep train unet` takes; images with ",
                      "classes: ", kLookedFor);
    case Kind::kMnist:
      throw DataError(shown(path),
                      ": this is MNIST, which `lockstep train mnist` takes; images with classes: ", kLookedFor);
    default:
      throw DataError(shown(path), ": no images with classes; ", kLookedFor, "; ", found_there(path));
  }
}

}  // namespace lockstep::datasets
