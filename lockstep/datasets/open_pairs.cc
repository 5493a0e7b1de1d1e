#include "lockstep/datasets/open_pairs.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/datasets/augment.h"
#include "lockstep/datasets/files/file_bytes.h"
#include "lockstep/datasets/files/kind.h"
#include "lockstep/datasets/pair_dataset.h"
#include "lockstep/datasets/scan_masks.h"

namespace lockstep::datasets {
namespace {

constexpr double kUsualValidation = 10;  // percent
constexpr int kStep = 16;                // U-Net halves images four times

// "3 of 24 images have no mask: imgs/1.png, imgs/7.png, …".
std::string list_of(const std::vector<std::string>& lost, size_t all, const char* what) {
  constexpr size_t kMost = 4;
  std::string list;
  for (size_t i = 0; i < std::min(kMost, lost.size()); ++i) list += cat(i == 0 ? "" : ", ", shown(lost[i]));
  return cat(lost.size(), " of ", all, " ", what, ": ", list, lost.size() > kMost ? ", …" : "");
}

Pairs find_whole_pairs(const std::string& path, const data::OnOneRank& on_one_rank) {
  Pairs pairs = find_pairs(path, on_one_rank);
  const size_t count = pairs.pairs.size();
  if (!pairs.without_mask.empty()) {
    const auto& lost = pairs.without_mask;
    throw DataError(shown(path), ": ", list_of(lost, count + lost.size(), "images have no mask"),
                    "; add their masks (NAME or NAME_mask), or remove them");
  }
  if (!pairs.without_image.empty()) {
    const auto& lost = pairs.without_image;
    throw DataError(shown(path), ": ", list_of(lost, count + lost.size(), "masks have no image"),
                    "; add their images, or remove them");
  }
  return pairs;
}

struct ImagesFound {
  int channels = 1;   // 3 if any image has colours
  image::Size first;  // the first image's size
};

ImagesFound look_at_images(const Pairs& pairs, bool exif) {
  image::Decoder decoder;
  std::vector<uint8_t> bytes;
  ImagesFound found;
  for (const Pair& pair : pairs.pairs) {
    const std::string path = pairs.path + "/" + pair.image;
    const image::ImageInfo& info = decoder.open(read_whole(path, bytes), shown(path), {.exif = exif});
    if (found.first.width == 0) found.first = info.upright();
    found.channels = info.channels;
    if (found.channels == 3) break;
  }
  return found;
}

ImagesFound look_at_images_once(const Pairs& pairs, const OpenOptions& options) {
  const auto look = [&] {
    const ImagesFound found = look_at_images(pairs, options.images.turns());
    return cat(found.channels, " ", found.first.width, " ", found.first.height);
  };
  std::istringstream text(options.on_one_rank ? options.on_one_rank(look) : look());
  ImagesFound found;
  text >> found.channels >> found.first.width >> found.first.height;
  return found;
}

int rounded(double pixels) { return std::max(1, static_cast<int>(std::lround(pixels / kStep))) * kStep; }

image::Size size_like(image::Size image, int shorter) {
  const double scale = static_cast<double>(shorter) / std::min(image.width, image.height);
  return {rounded(image.width * scale), rounded(image.height * scale)};
}

}  // namespace

data::Splits open_pairs(const OpenOptions& options) {
  const std::string& path = options.path;
  const bool parts = !pair_folders(path).found() && pair_folders(path + "/train").found();
  const Pairs train = find_whole_pairs(parts ? path + "/train" : path, options.on_one_rank);
  const ImagesFound images = look_at_images_once(train, options);
  const image::LabelMap labels = labels_of(train, options.threads, options.on_one_rank);
  ImageSetup setup = pair_setup(options, size_like(images.first, options.size));
  setup.decode.channels = images.channels;
  data::Splits splits{.train = pair_dataset(train, labels, setup, true), .usual_validation = kUsualValidation};
  for (const char* name : {"val", "validation", "valid", "test"}) {
    if (!parts || splits.test != nullptr || !pair_folders(path + "/" + name).found()) continue;
    splits.test = pair_dataset(find_whole_pairs(path + "/" + name, options.on_one_rank), labels, setup, false);
  }
  return splits;
}

}  // namespace lockstep::datasets
