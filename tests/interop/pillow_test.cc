// Our resized pixels beside Pillow's: `./run test interop` has it, elsewhere this is skipped. LOCKSTEP_PILLOW_PICTURE
// names a PNG that is drawn of it, for docs/data.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "lockstep/base/draw.h"
#include "lockstep/base/env.h"
#include "lockstep/base/testing/command.h"
#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/base/text.h"
#include "lockstep/image/crops.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/pipeline.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing_support::TempDir;
using Transforms = std::vector<std::shared_ptr<const image::Transform>>;

struct Path {
  const char* name;
  Transforms transforms;
};

// An evaluation's resize of the whole, and training's crop, of which alone something is decoded.
std::vector<Path> paths() {
  return {{"whole", {image::resize_shorter(256), image::center_crop({224, 224})}},
          {"crop", {image::random_resized_crop({224, 224})}}};
}

std::vector<uint8_t> bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

// The photographs that lie beside the sources, or pictures made on the spot.
std::vector<std::string> photographs(const TempDir& folder) {
  std::vector<std::string> found;
  const std::string beside = LOCKSTEP_SOURCE_DIR "/../shared/data/photos";
  if (fs::exists(beside)) {
    for (const auto& entry : fs::recursive_directory_iterator(beside)) {
      if (entry.is_regular_file()) found.push_back(entry.path());
    }
  } else {
    for (const uint64_t seed : {1, 2, 3, 4}) {
      found.push_back(folder / cat(seed, ".jpg"));
      write(found.back(), image::encode_jpeg(image::testing_support::picture({500, 375}, 3, seed)));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

image::Geometry plan_of(const Path& path, image::Size size, const Draw& draw) {
  image::Geometry geometry = image::whole(size);
  for (const auto& transform : path.transforms) {
    geometry = *transform->plan(geometry, draw.stream(static_cast<uint32_t>(transform->slot())));
  }
  return geometry;
}

std::vector<int> corners(const image::Rect& rect) {
  return {rect.x, rect.y, rect.x + rect.width, rect.y + rect.height};
}

nlohmann::json resized(const Path& path, const std::string& photo, uint64_t number, const TempDir& folder) {
  image::Decoder decoder;
  image::Scratch scratch;
  image::Sample sample;
  image::Pipeline::Times times;
  const Draw draw{.seed = 1, .epoch = 0, .number = number};
  const auto bytes = bytes_of(photo);
  const image::Geometry plan = plan_of(path, decoder.open(bytes, photo, {.exif = false}).upright(), draw);
  image::Pipeline(path.transforms).run(decoder, nullptr, nullptr, draw, scratch, sample, times);
  std::vector<uint8_t> pixels;
  for (int y = 0; y < sample.image.height(); ++y) {
    for (int x = 0; x < sample.image.width(); ++x) {
      pixels.insert(pixels.end(), sample.image.at(x, y), sample.image.at(x, y) + 3);
    }
  }
  const std::string file = folder / cat(path.name, number, ".rgb");
  write(file, pixels);
  return {{"photo", photo},
          {"path", path.name},
          {"box", corners(plan.source)},
          {"resized", {plan.resized.width, plan.resized.height}},
          {"window", corners(plan.window)},
          {"pixels", file}};
}

TEST(InteropPillow, ResizedPixelsAreWithinALevel) {
  const std::string python = env("LOCKSTEP_PYTORCH_PYTHON").value_or("python3");
  if (testing_support::run_command(python + " -c 'import numpy, PIL' 2>&1").status != 0) {
    GTEST_SKIP() << python << " has no Pillow; name one that has in LOCKSTEP_PYTORCH_PYTHON";
  }
  const TempDir folder;
  const std::string list = folder / "list.jsonl";
  std::ofstream lines(list);
  for (const Path& path : paths()) {
    uint64_t number = 0;
    for (const std::string& photo : photographs(folder)) lines << resized(path, photo, number++, folder).dump() << '\n';
  }
  lines.close();
  const auto output =
      testing_support::run_command(cat(python, " " LOCKSTEP_SOURCE_DIR "/tests/interop/pillow.py ", list, " ",
                                       env("LOCKSTEP_PILLOW_PICTURE").value_or(""), " 2>&1"));
  EXPECT_EQ(output.status, 0) << output.text;
  for (const char* path : {"whole: ", "crop: "}) EXPECT_THAT(output.text, ::testing::HasSubstr(path));
  std::cout << output.text;
}

}  // namespace
}  // namespace lockstep
