#include "pictures.h"

#include <array>
#include <filesystem>
#include <span>

#include "lockstep/base/philox.h"
#include "lockstep/image/colour_operations.h"
#include "lockstep/image/encode.h"
#include "program.h"

namespace lockstep::e2e {
namespace {

using image::Pixels;

RandomStream stream_of(uint32_t seed, uint32_t number) { return {seed, Purpose::kSynthetic, 0, number}; }

void write_bytes(const std::string& path, std::span<const uint8_t> bytes) {
  write_file(path, std::string(bytes.begin(), bytes.end()));
}

// A disc on a ground, both with noise; its mask.
struct Disc {
  Disc(RandomStream random, int side) {
    image.reshape({side, side}, 1);
    mask.reshape({side, side}, 1);
    const auto below = [&](int n) { return static_cast<int>(random.below(static_cast<uint32_t>(n))); };
    const int x0 = side / 4 + below(side / 2), y0 = side / 4 + below(side / 2), radius = side / 8 + below(side / 8);
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const bool inside = (x - x0) * (x - x0) + (y - y0) * (y - y0) <= radius * radius;
        image.at(x, y)[0] = static_cast<uint8_t>((inside ? 150 : 50) + below(50));
        mask.at(x, y)[0] = inside ? 255 : 0;
      }
    }
  }
  Pixels image, mask;
};

}  // namespace

Pixels class_picture(uint32_t label, uint32_t classes, uint32_t number, int side) {
  RandomStream random = stream_of(label, number);
  const int width = side + static_cast<int>(random.below(17)), height = side + static_cast<int>(random.below(17));
  Pixels pixels;
  pixels.reshape({width, height}, 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      uint8_t* const pixel = pixels.at(x, y);
      pixel[0] = static_cast<uint8_t>(150 + random.below(80));
      pixel[1] = pixel[2] = static_cast<uint8_t>(40 + random.below(60));
    }
  }
  image::turn_hue(pixels, static_cast<double>(label) / classes - 0.5);
  return pixels;
}

void write_class_folders(const std::string& folder, uint32_t classes, uint32_t a_class, uint32_t seed) {
  constexpr std::array kSubsamplings = {image::Subsampling::k420, image::Subsampling::k444, image::Subsampling::k422};
  for (uint32_t label = 0; label < classes; ++label) {
    const std::string of_class = folder + "/class_" + (label < 10 ? "0" : "") + std::to_string(label);
    std::filesystem::create_directories(of_class);
    for (uint32_t i = 0; i < a_class; ++i) {
      const Pixels pixels = class_picture(label, classes, seed * 1000 + i);
      const image::JpegOptions options{.subsampling = kSubsamplings[i % kSubsamplings.size()],
                                       .progressive = i % 4 == 1,
                                       .orientation = i % 5 == 2 ? 6 : 0};
      write_bytes(of_class + "/" + std::to_string(i) + ".jpg", image::encode_jpeg(pixels, options));
    }
  }
}

void write_image_and_mask_folders(const std::string& folder, uint32_t count, uint32_t seed) {
  std::filesystem::create_directories(folder + "/imgs");
  std::filesystem::create_directories(folder + "/masks");
  for (uint32_t i = 0; i < count; ++i) {
    const Disc disc(stream_of(seed, i), 96);
    const std::string name = std::to_string(i) + ".png";
    write_bytes(folder + "/imgs/" + name, image::encode_png(disc.image));
    write_bytes(folder + "/masks/" + name, image::encode_png(disc.mask));
  }
}

}  // namespace lockstep::e2e
