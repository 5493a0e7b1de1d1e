#include "lockstep/recipes/options/micrographs.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "lockstep/datasets/files/kind.h"
#include "lockstep/datasets/files/listing.h"

namespace lockstep::recipes {
namespace {

namespace fs = std::filesystem;

constexpr int kLeast = 6, kMost = 64;  // of fewer none could be held out for validation
constexpr uint32_t kMostSide = 1024;   // larger ones would take a machine's memory whole

// The signature, then the chunk IHDR: its length, its name, width, height, bits, colour type
// (https://www.w3.org/TR/png-3/#11IHDR).
bool is_grey_png(const fs::path& path, uint32_t side) {
  std::array<unsigned char, 26> head{};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(head.data()), head.size())) return false;
  const auto number = [&](size_t at) {
    return uint32_t{head[at]} << 24 | uint32_t{head[at + 1]} << 16 | uint32_t{head[at + 2]} << 8 | head[at + 3];
  };
  constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";
  constexpr unsigned char kGrey = 0;
  const std::string_view begin(reinterpret_cast<const char*>(head.data()), kSignature.size());
  const auto fits = [&](uint32_t pixels) { return pixels >= side && pixels <= kMostSide; };
  return begin == kSignature && fits(number(16)) && fits(number(20)) && head[25] == kGrey;
}

}  // namespace

bool are_micrographs(const std::string& folder, int side) {
  const datasets::PairFolders folders = datasets::pair_folders(folder);
  if (!folders.found() || folders.images.empty()) return false;
  std::error_code error;
  int images = 0;
  // Not entries_of(), which lists a large folder to its end before the first file tells that there are too many.
  for (fs::directory_iterator at(folder + '/' + folders.images, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (name.starts_with('.')) continue;
    if (datasets::has_ending(name, {"jpg", "jpeg", "gif", "npy"})) return false;
    if (!datasets::has_ending(name, {"png"})) continue;
    if (++images > kMost || !is_grey_png(at->path(), static_cast<uint32_t>(side))) return false;
  }
  return !error && images >= kLeast;
}

}  // namespace lockstep::recipes
