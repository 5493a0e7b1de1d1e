#include "lockstep/datasets/open_pairs.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/datasets/augment.h"
#include "lockstep/datasets/pair_dataset.h"
#include "lockstep/datasets/pairs.h"
#include "lockstep/datasets/scan_masks.h"
#include "lockstep/datasets/stored_data.h"

namespace lockstep::datasets {
namespace {

struct ImagesFound {
  int channels = 1;   // 3 if any image has colours
  image::Size first;  // the first image's size
};

// `passes_over_bad`: images that can't be read count only where all of them are so.
ImagesFound look_at_images(const ImageSource& images, bool exif, bool passes_over_bad) {
  image::Decoder decoder;
  std::vector<uint8_t> bytes;
  std::optional<ImagesFound> found;
  std::exception_ptr bad;
  const auto look = [&](int64_t index) {
    try {
      const image::ImageInfo& info =
          open_encoded(decoder, images.read(index, bytes), images.name_of(index), {.exif = exif});
      if (!found) found = ImagesFound{.first = info.upright()};
      found->channels = std::max(found->channels, info.channels);
    } catch (const DataError&) {
      if (!passes_over_bad) throw;
      if (bad == nullptr) bad = std::current_exception();
    }
  };
  look(images.first());
  for (int64_t index = 0; index < images.size() && (!found || found->channels == 1); ++index) look(index);
  if (!found) std::rethrow_exception(bad);
  return *found;
}

ImagesFound look_at_images_once(const ImageSource& images, const OpenOptions& options, const Find& find) {
  const bool turned = options.images.turns();
  const auto look = [&] {
    const ImagesFound found = look_at_images(images, turned, options.passes_over_bad);
    return cat(found.channels, " ", found.first.width, " ", found.first.height);
  };
  const char* const name = turned ? "images-1" : "images-as-stored-1";
  std::istringstream text(options.on_one_rank([&] { return find(name, look); }));
  ImagesFound found;
  text >> found.channels >> found.first.width >> found.first.height;
  return found;
}

}  // namespace

data::Splits open_pairs(const OpenOptions& options) {
  const std::string& path = options.path;
  const Layout layout = find_layout(path, options.on_one_rank);
  const bool packed = layout.kind == Kind::kPacked;
  if (packed && layout.packed != Packed::kMasks) {
    throw DataError(shown(path),
                    ": packed images with classes, which `lockstep train imagenet` takes; pack a folder of ",
                    "images and masks");
  }
  // Says what it looked for.
  if (!packed && layout.kind != Kind::kPairs) find_pairs(path, {.on_one_rank = options.on_one_rank});
  const StoredData stored = open_stored(path, layout, {.on_one_rank = options.on_one_rank});
  std::optional<std::string> stamp;  // asked for by the rank that looks, once
  const Find find = [&](const std::string& name, const data::Findings::Look& look) {
    if (options.findings == nullptr) return look();
    if (!stamp) stamp = stored.train().stamp();
    return options.findings->find(name, *stamp, look);
  };
  const ImagesFound images = look_at_images_once(stored.train(), options, find);
  const image::LabelMap labels = labels_of(stored.train(), options, find);
  ImageSetup setup = pair_setup(options, sides_like(images.first, options));
  setup.decode.channels = images.channels;
  const auto test = stored.test();
  return {.train = pair_dataset(stored.parts[0].images, labels, setup, true),
          .test = test == nullptr ? nullptr : pair_dataset(test, labels, setup, false),
          .usual_validation = kUsualValidation};
}

}  // namespace lockstep::datasets
