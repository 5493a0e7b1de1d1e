#include "lockstep/datasets/open_pairs.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/base/in_order.h"
#include "lockstep/base/shown.h"
#include "lockstep/datasets/augment.h"
#include "lockstep/datasets/pair_dataset.h"
#include "lockstep/datasets/pairs.h"
#include "lockstep/datasets/scan_masks.h"
#include "lockstep/datasets/stored_data.h"

namespace lockstep::datasets {
namespace {

struct ImagesFound {
  int channels = 1;     // 3 if any image has colours
  image::Size first;    // the first image's size
  int64_t example = 0;  // the number of the first image that has these channels
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
      if (!found) found = ImagesFound{.channels = info.channels, .first = info.upright(), .example = index};
      if (info.channels > found->channels) {
        found->channels = info.channels;
        found->example = index;
      }
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

// Reads what an image says of itself.
class HeaderReader {
 public:
  explicit HeaderReader(const ImageSource& images) : images_(images) {}
  image::ImageInfo operator()(int64_t index) {
    return open_encoded(decoder_, images_.read(index, bytes_), images_.name_of(index));
  }

 private:
  const ImageSource& images_;
  image::Decoder decoder_;
  std::vector<uint8_t> bytes_;
};

// Looks at all images for alpha. The first of another kind is named before training, and not in the midst of it.
void check_alpha(const ImageSource& images, int channels, const OpenOptions& options) {
  in_order<image::ImageInfo>(
      images.size(), options.threads, [&] { return HeaderReader(images); },
      [&](int64_t index, Outcome<image::ImageInfo> found) {
        std::optional<image::ImageInfo> info;
        try {
          info = std::move(found).get();
        } catch (const DataError&) {
          if (!options.passes_over_bad) throw;
        }
        if (info) check_channels(*info, images.name_of(index), channels);
      });
}

void check_alpha_once(const StoredData& stored, int channels, const OpenOptions& options, const Find& find) {
  if (!image::has_alpha(channels)) return;
  options.on_one_rank([&] {
    // What is found is kept for as long as the training files are the same.
    find(cat("alpha-", channels, options.passes_over_bad ? "-readable" : ""), [&] {
      check_alpha(stored.train(), channels, options);
      return std::string("ok");
    });
    for (size_t part = 1; part < stored.parts.size(); ++part)
      check_alpha(*stored.parts[part].images, channels, options);
    return std::string("ok");
  });
}

ImagesFound look_at_images_once(const ImageSource& images, const OpenOptions& options, const Find& find) {
  const bool turned = options.images.turns();
  const auto look = [&] {
    const ImagesFound found = look_at_images(images, turned, options.passes_over_bad);
    return cat(found.channels, " ", found.first.width, " ", found.first.height, " ", found.example);
  };
  const char* const name = turned ? "images-2" : "images-as-stored-2";
  std::istringstream text(options.on_one_rank([&] { return find(name, look); }));
  ImagesFound found;
  text >> found.channels >> found.first.width >> found.first.height >> found.example;
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
  check_classes(stored.train(), labels, options);
  ImageSetup setup = pair_setup(options, sides_like(images.first, options));
  setup.decode.channels = options.channels.value_or(images.channels);
  check_alpha_once(stored, setup.decode.channels, options, find);
  const auto test = stored.test();
  const std::string example = options.channels ? "" : stored.train().name_of(images.example);
  return {.train = pair_dataset(stored.parts[0].images, labels, setup, true, example),
          .test = test == nullptr ? nullptr : pair_dataset(test, labels, setup, false, example),
          .usual_validation = kUsualValidation};
}

}  // namespace lockstep::datasets
