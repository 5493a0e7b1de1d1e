#include "lockstep/datasets/open_images.h"

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/datasets/augment.h"
#include "lockstep/datasets/cifar.h"
#include "lockstep/datasets/found_there.h"
#include "lockstep/datasets/image_dataset.h"
#include "lockstep/datasets/stored_data.h"

namespace lockstep::datasets {
namespace {

constexpr const char* kLookedFor =
    "looked for train/ and val/ of class folders (train/cats/1.jpg), class folders (cats/1.jpg), packed data "
    "(manifest.json), train.rec, and CIFAR's data_batch_1.bin or train.bin";

// The setup of the kind of images. CIFAR's are small, and all of one size.
ImageSetup setup_of(Packed kind, const OpenOptions& options) {
  if (kind == Packed::kCifar10) return small_image_setup(options, kCifarSize, cifar_normalize(Cifar::k10));
  if (kind == Packed::kCifar100) return small_image_setup(options, kCifarSize, cifar_normalize(Cifar::k100));
  return photograph_setup(options);
}

[[noreturn]] void throw_masks(const std::string& path) {
  throw DataError(shown(path), ": these are images and their masks, which `lockstep train unet` takes; images with ",
                  "classes: ", kLookedFor);
}

data::Splits open_parts(const OpenOptions& options, const Layout& layout) {
  const StoredData stored = open_stored(options.path, layout, {.on_one_rank = options.on_one_rank});
  if (options.encoded && (stored.kind == Packed::kCifar10 || stored.kind == Packed::kCifar100)) {
    throw ConfigError("--decode device: ", shown(options.path), " holds CIFAR's pixels, which need no decoding; use ",
                      "--decode host");
  }
  const ImageSetup setup = setup_of(stored.kind, options);
  const auto test = stored.test();
  return {.train = image_dataset(stored.parts[0].images, setup, true),
          .test = test == nullptr ? nullptr : image_dataset(test, setup, false),
          .usual_validation = kUsualValidation};
}

}  // namespace

data::Splits open_images(const OpenOptions& options) {
  const std::string& path = options.path;
  const Layout layout = find_layout(path, options.on_one_rank);
  switch (layout.kind) {
    case Kind::kPairs:
      throw_masks(path);
    case Kind::kMnist:
      throw DataError(shown(path),
                      ": this is MNIST, which `lockstep train mnist` takes; images with classes: ", kLookedFor);
    case Kind::kUnknown:
      throw DataError(shown(path), ": no images with classes; ", kLookedFor, "; ", found_there(path));
    default:
      if (layout.packed == Packed::kMasks) throw_masks(path);
      return open_parts(options, layout);
  }
}

}  // namespace lockstep::datasets
