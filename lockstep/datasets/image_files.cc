#include "lockstep/datasets/image_files.h"

#include <array>
#include <string_view>
#include <vector>

#include "lockstep/base/text.h"

namespace lockstep::datasets {
namespace {

struct Ending {
  const char* format;
  std::vector<std::string_view> endings;
};

const std::array<Ending, 4>& all_endings() {
  static const std::array<Ending, 4> kEndings = {Ending{"JPEG", {"jpg", "jpeg"}}, Ending{"PNG", {"png"}},
                                                 Ending{"GIF", {"gif"}}, Ending{"npy", {"npy"}}};
  return kEndings;
}

}  // namespace

bool is_image(const std::string& name) {
  for (const Ending& each : all_endings()) {
    if (has_ending(name, each.endings)) return true;
  }
  return false;
}

Listing list_files_once(const std::string& path, const data::OnOneRank& on_one_rank, const OnProblem& on_problem) {
  return listing_of(on_one_rank([&] { return text_of(list_files(path, 8, on_problem)); }));
}

std::string count_of_images(const Listing& images) {
  std::string formats;
  int kinds = 0;
  for (const Ending& each : all_endings()) {
    int64_t count = 0;
    for (const Listed& image : images) count += has_ending(image.name, each.endings);
    if (count == static_cast<int64_t>(images.size())) return cat(count, " ", each.format, count == 1 ? "" : "s");
    if (count > 0) formats += cat(kinds++ == 0 ? "" : ", ", count, " ", each.format);
  }
  return cat(images.size(), " images (", formats, ")");
}

}  // namespace lockstep::datasets
