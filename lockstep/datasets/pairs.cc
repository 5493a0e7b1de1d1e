#include "lockstep/datasets/pairs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/base/text.h"
#include "lockstep/data/dataset.h"
#include "lockstep/datasets/files/file_bytes.h"
#include "lockstep/datasets/files/stamp.h"
#include "lockstep/datasets/found_there.h"
#include "lockstep/datasets/image_files.h"
#include "lockstep/datasets/layout.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kSuffix = "_mask";

// The folders that images and masks lie in begin the names: a name's rest, without its ending, tells partners.
std::string stem_of(const std::string& name) {
  const size_t folder = name.find('/') + 1;
  return name.substr(folder, name.rfind('.') - folder);
}

using Stems = std::map<std::string, std::string>;  // stem -> name

// Collects the images, or the masks, of one folder.
struct Stemmed {
  const std::string& path;
  const OnProblem& on_problem;
  const char* partner;  // "mask"
  Listing& listing;
  Stems names = {};

  void add(const std::string& stem, const Listed& file) {
    const auto [other, added] = names.emplace(stem, file.name);
    if (added) return listing.push_back(file);
    tell(on_problem, cat(shown(path + "/" + file.name), ": ", shown(other->second), " has the same name, so that its ",
                         partner, " is not certain; remove or rename one"));
  }
};

// "3 of 24 images have no mask: imgs/1.png, imgs/7.png, …".
std::string list_of(const std::vector<std::string>& lost, size_t all, const char* what) {
  constexpr size_t kMost = 4;
  return cat(lost.size(), " of ", all, " ", what, ": ", first_few(lost, kMost, shown));
}

void check_partners(const Pairs& found, const OnProblem& on_problem) {
  const auto check = [&](const std::vector<std::string>& lost, const char* none, const char* all, const char* advice) {
    for (const std::string& name : lost) {
      if (on_problem) on_problem(cat(shown(found.path + "/" + name), ": ", none, advice));
    }
    if (lost.empty() || on_problem) return;
    throw DataError(shown(found.path), ": ", list_of(lost, found.pairs.size() + lost.size(), all), advice);
  };
  check(found.without_mask, "an image without a mask", "images have no mask",
        "; add their masks (NAME or NAME_mask), or remove them");
  check(found.without_image, "a mask without an image", "masks have no image", "; add their images, or remove them");
}

class PairFiles final : public ImageSource {
 public:
  explicit PairFiles(Pairs pairs) : pairs_(std::move(pairs)) {}

  int64_t size() const override { return std::ssize(pairs_.pairs); }
  Encoded read(int64_t index, std::vector<uint8_t>& memory) const override {
    return {read_whole(path_of(at(index).image), memory)};
  }
  bool has_masks() const override { return true; }
  Encoded read_mask(int64_t index, std::vector<uint8_t>& memory) const override {
    return {read_whole(path_of(at(index).mask), memory)};
  }
  EncodedPair read_pair(int64_t index, PairMemory& memory) const override {
    return {read(index, memory.image), read_mask(index, memory.mask)};
  }

  std::string name_of(int64_t index) const override { return shown(path_of(at(index).image)); }
  std::string short_name_of(int64_t index) const override { return at(index).image; }
  std::string mask_name_of(int64_t index) const override { return shown(path_of(at(index).mask)); }
  std::string fingerprint() const override { return fingerprint_of(pairs_.listing); }
  Listing listing() const override { return pairs_.listing; }
  std::string stamp() const override { return stamp_of(pairs_.path, pairs_.listing); }

  std::string text() const override {
    Listing images;
    for (const Pair& pair : pairs_.pairs) images.push_back({pair.image, 0});
    return cat(count_of_images(images), " with masks in ", shown(pairs_.path));
  }

 private:
  const Pair& at(int64_t index) const {
    data::check_index(index, size());
    return pairs_.pairs[static_cast<size_t>(index)];
  }
  std::string path_of(const std::string& name) const { return pairs_.path + "/" + name; }

  Pairs pairs_;
};

}  // namespace

Pairs match_pairs(const std::string& path, const Listing& images, const Listing& masks, const OnProblem& on_problem) {
  Pairs found{.path = path, .pairs = {}, .without_mask = {}, .without_image = {}, .listing = {}};
  Stemmed of_images{path, on_problem, "mask", found.listing}, of_masks{path, on_problem, "image", found.listing};
  const Stems &image_of = of_images.names, &mask_of = of_masks.names;
  for (const Listed& image : images) {
    if (is_image(image.name)) of_images.add(stem_of(image.name), image);
  }
  for (const Listed& mask : masks) {
    if (!is_image(mask.name)) continue;
    std::string stem = stem_of(mask.name);
    if (stem.ends_with(kSuffix) && !image_of.contains(stem)) stem.resize(stem.size() - kSuffix.size());
    of_masks.add(stem, mask);
  }
  for (const auto& [stem, image] : image_of) {
    const auto mask = mask_of.find(stem);
    if (mask == mask_of.end()) {
      found.without_mask.push_back(image);
    } else {
      found.pairs.push_back({image, mask->second});
    }
  }
  for (const auto& [stem, mask] : mask_of) {
    if (!image_of.contains(stem)) found.without_image.push_back(mask);
  }
  std::sort(found.pairs.begin(), found.pairs.end(), [](const Pair& a, const Pair& b) { return a.image < b.image; });
  std::sort(found.listing.begin(), found.listing.end(),
            [](const Listed& a, const Listed& b) { return a.name < b.name; });
  return found;
}

Pairs find_pairs(const std::string& path, const PairOptions& options) {
  const PairFolders folders = pair_folders(path, options.on_one_rank);
  if (!folders.found()) {
    throw DataError(shown(path), ": no images and masks; looked for the folders imgs, images or train, and masks, ",
                    "train_masks or labels; ", found_there(path));
  }
  const auto list = [&](const std::string& folder) {
    Listing files = list_files_once(path + "/" + folder, options.on_one_rank, options.on_problem);
    for (Listed& file : files) file.name = folder + "/" + file.name;
    return files;
  };
  const Listing images = list(folders.images), masks = list(folders.masks);
  Pairs found = match_pairs(path, images, masks, options.on_problem);
  if (found.pairs.empty()) {
    throw DataError(shown(path), ": no image (", kImageEndings, ") in ", folders.images, "/ has a mask in ",
                    folders.masks, "/; a mask is named as its image, or NAME_mask");
  }
  return found;
}

std::shared_ptr<const ImageSource> pair_files(Pairs pairs, const OnProblem& on_problem) {
  check_partners(pairs, on_problem);
  return std::make_shared<PairFiles>(std::move(pairs));
}

}  // namespace lockstep::datasets
