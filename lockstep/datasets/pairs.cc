#include "lockstep/datasets/pairs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/datasets/files/kind.h"
#include "lockstep/datasets/found_there.h"
#include "lockstep/datasets/image_files.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kSuffix = "_mask";

// The folders that images and masks lie in begin the names: a name's rest, without its ending, tells partners.
std::string stem_of(const std::string& name) {
  const size_t folder = name.find('/') + 1;
  return name.substr(folder, name.rfind('.') - folder);
}

using Stems = std::map<std::string, std::string>;  // stem -> name

void add(Stems& stems, const std::string& stem, const std::string& name, const std::string& path, const char* what) {
  const auto [other, added] = stems.emplace(stem, name);
  if (added) return;
  throw DataError(shown(path + "/" + name), ": ", shown(other->second), " has the same name, so that its ", what,
                  " is not certain; remove or rename one");
}

}  // namespace

Pairs match_pairs(const std::string& path, const Listing& images, const Listing& masks) {
  Pairs found{.path = path, .pairs = {}, .without_mask = {}, .without_image = {}, .listing = {}};
  Stems image_of, mask_of;
  for (const Listed& image : images) {
    if (!is_image(image.name)) continue;
    add(image_of, stem_of(image.name), image.name, path, "mask");
    found.listing.push_back(image);
  }
  for (const Listed& mask : masks) {
    if (!is_image(mask.name)) continue;
    std::string stem = stem_of(mask.name);
    if (stem.ends_with(kSuffix) && !image_of.contains(stem)) stem.resize(stem.size() - kSuffix.size());
    add(mask_of, stem, mask.name, path, "image");
    found.listing.push_back(mask);
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

Pairs find_pairs(const std::string& path, const data::OnOneRank& on_one_rank) {
  const PairFolders folders = pair_folders(path);
  if (!folders.found()) {
    throw DataError(shown(path), ": no images and masks; looked for the folders imgs, images or train, and masks, ",
                    "train_masks or labels; ", found_there(path));
  }
  const auto list = [&](const std::string& folder) {
    Listing files = list_files_once(path + "/" + folder, on_one_rank);
    for (Listed& file : files) file.name = folder + "/" + file.name;
    return files;
  };
  const Listing images = list(folders.images), masks = list(folders.masks);
  Pairs found = match_pairs(path, images, masks);
  if (found.pairs.empty()) {
    throw DataError(shown(path), ": no image (", kImageEndings, ") in ", folders.images, "/ has a mask in ",
                    folders.masks, "/; a mask is named as its image, or NAME_mask");
  }
  return found;
}

}  // namespace lockstep::datasets
