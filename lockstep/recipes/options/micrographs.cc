#include "lockstep/recipes/options/micrographs.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "lockstep/datasets/files/kind.h"

namespace lockstep::recipes {
namespace {

namespace fs = std::filesystem;

constexpr int kLeast = 6, kMost = 64;  // of fewer none could be held out for validation
constexpr uint32_t kMostSide = 1024;   // larger ones would take a machine's memory whole

constexpr std::array<std::string_view, 4> kOtherPictures = {".jpg", ".jpeg", ".gif", ".npy"};

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

// ".png", in small letters; "" of hidden files.
std::string ending_of(const fs::path& path) {
  if (path.filename().string().starts_with('.')) return "";
  std::string ending = path.extension();
  for (char& letter : ending) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return ending;
}

}  // namespace

bool are_micrographs(const std::string& folder, int side) {
  const datasets::PairFolders folders = datasets::pair_folders(folder);
  if (!folders.found() || folders.images.empty()) return false;
  std::error_code error;
  int images = 0;
  for (fs::directory_iterator at(folder + '/' + folders.images, error), end; !error && at != end; at.increment(error)) {
    const std::string ending = ending_of(at->path());
    if (std::ranges::find(kOtherPictures, ending) != kOtherPictures.end()) return false;
    if (ending != ".png") continue;
    if (++images > kMost || !is_grey_png(at->path(), static_cast<uint32_t>(side))) return false;
  }
  return !error && images >= kLeast;
}

}  // namespace lockstep::recipes
