#include "lockstep/recipes/options/micrographs.h"

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace lockstep::recipes {
namespace {

namespace fs = std::filesystem;

constexpr int kMost = 64;

// The signature, then the chunk IHDR: its length, its name, width, height, bits, colour type
// (https://www.w3.org/TR/png-3/#11IHDR).
bool is_large_grey_png(const fs::path& path, uint32_t side) {
  std::array<unsigned char, 26> head{};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(head.data()), head.size())) return false;
  const auto number = [&](size_t at) {
    return uint32_t{head[at]} << 24 | uint32_t{head[at + 1]} << 16 | uint32_t{head[at + 2]} << 8 | head[at + 3];
  };
  constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";
  constexpr unsigned char kGrey = 0;
  const std::string_view begin(reinterpret_cast<const char*>(head.data()), kSignature.size());
  return begin == kSignature && number(16) >= side && number(20) >= side && head[25] == kGrey;
}

}  // namespace

bool are_micrographs(const std::string& folder, int side) {
  std::error_code error;
  if (!fs::is_directory(folder + "/masks", error)) return false;
  int images = 0;
  for (fs::directory_iterator at(folder + "/imgs", error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().starts_with('.')) continue;
    if (++images > kMost || !is_large_grey_png(at->path(), static_cast<uint32_t>(side))) return false;
  }
  return !error && images > 0;
}

}  // namespace lockstep::recipes
