// Writes small sound files for the fuzzing programs to begin with: seeds FOLDER writes FOLDER/jpeg/0 and so on.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <span>

#include "lockstep/datasets/digits/testing/mnist_files.h"
#include "lockstep/datasets/packed/manifest.h"
#include "lockstep/datasets/packed/testing/record_io_file.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/testing/encode_gif.h"
#include "lockstep/image/testing/encode_npy.h"
#include "lockstep/image/testing/odd_jpeg.h"
#include "lockstep/image/testing/pictures.h"

using namespace lockstep;
using namespace lockstep::image;
using namespace lockstep::image::testing_support;
using namespace lockstep::datasets::testing;

namespace {

namespace fs = std::filesystem;

class Seeds {
 public:
  explicit Seeds(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_of(const std::string& target) const {
    fs::create_directories(folder_ + "/" + target);
    return folder_ + "/" + target;
  }
  void add(const std::string& target, std::span<const char> bytes) {
    const std::string path = cat(folder_of(target), "/", count_[target]++);
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  void add(const std::string& target, const std::vector<uint8_t>& bytes) {
    add(target, std::span(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }

 private:
  std::string folder_;
  std::map<std::string, int> count_;
};

void add_jpegs(Seeds& seeds) {
  const Pixels colours = picture({35, 19}), grey = picture({19, 35}, 1);
  for (const Subsampling each : {Subsampling::k444, Subsampling::k422, Subsampling::k420, Subsampling::k440,
                                 Subsampling::k411, Subsampling::k410}) {
    seeds.add("jpeg", encode_jpeg(colours, {.subsampling = each, .orientation = 1 + static_cast<int>(each)}));
  }
  seeds.add("jpeg", encode_jpeg(colours, {.progressive = true}));
  seeds.add("jpeg", encode_jpeg(colours, {.restart_rows = 1}));
  seeds.add("jpeg", encode_jpeg(colours, {.interleaved = false}));
  seeds.add("jpeg", encode_jpeg(colours, {.cmyk = true}));
  seeds.add("jpeg", encode_jpeg(grey));
  seeds.add("jpeg", encode_odd_jpeg(colours, {.name = "arithmetic", .arithmetic = true}));
}

void add_pngs(Seeds& seeds) {
  const Pixels colours = picture({13, 9}), grey = picture({13, 9}, 1);
  for (const bool interlaced : {false, true}) {
    for (const int bits : {8, 16}) seeds.add("png", encode_png(colours, {.bits = bits, .interlaced = interlaced}));
    for (const int bits : {1, 2, 4, 8, 16})
      seeds.add("png", encode_png(grey, {.bits = bits, .interlaced = interlaced}));
    for (const int bits : {1, 4, 8}) {
      const PngOptions options{.colour = PngColour::kPalette, .bits = bits, .interlaced = interlaced};
      seeds.add("png", encode_png(grey, options));
    }
    seeds.add("png", encode_png(colours, {.colour = PngColour::kAlpha, .interlaced = interlaced, .orientation = 6}));
  }
}

void add_other_images(Seeds& seeds) {
  const Pixels grey = picture({13, 9}, 1), dark = flat({13, 9}, 1, 3);
  seeds.add("gif", encode_gif(grey));
  seeds.add("gif", encode_gif(dark, {.interlaced = true, .bits = 2, .greys = {0, 64, 128, 255}}));
  seeds.add("gif", encode_gif(grey, {.screen = {20, 15}, .left = 3, .top = 2, .frames = 2}));
  const std::vector<uint8_t> elements(48, 1);
  for (const char* type : {"'|u1'", "'|b1'", "'<u2'", "'>i4'", "'<i8'"}) {
    for (const char* shape : {"(2, 3)", "(6, 8)", "(4, 4, 3)", "(2, 6)", "(3, 8)", "(4, 3)"}) {
      seeds.add("npy", encode_npy(type, shape, elements, shape[1] == '2'));
    }
  }
  seeds.add("npy", encode_npy("'|u1'", "(6, 8)", elements, false, 2));
}

void add_digits(Seeds& seeds) {
  for (const std::string& file : {idx_images(2, 3, 4), idx_labels(12)}) {
    seeds.add("idx", file);
    seeds.add("idx", gzip(file));
    seeds.add("idx", gzip(file.substr(0, 9)) + gzip(file.substr(9)));
  }
  const std::string part = "[[" + json_image("0") + "," + json_image("1") + "],[7,0]]";
  for (const std::string& file :
       {"[" + part + "," + part + "," + part + "]", std::string("[[[],[]],[[],[]],[[],[]]]")}) {
    seeds.add("mnist_json", file);
    seeds.add("mnist_json", gzip(file));
  }
}

void add_packed(Seeds& seeds) {
  const std::string image = "an image", magic = number(kRecordIoMagic), odd = "ab" + magic + "cd" + magic;
  seeds.add("record_io", record_io(image_record(1, image)) + record_io(image_record(3, image, 1)));
  seeds.add("record_io", record_io(image_record(0, odd)) + record_io(image_record(2, "")));
  const std::string folder = seeds.folder_of("packed");
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(image.data()), image.size());
  datasets::ShardWriter writer(folder, "shard");
  writer.add({.class_number = 0, .width = 4, .height = 2, .codec = datasets::Codec::kRaw, .image = bytes, .mask = {}},
             0, "a.raw");
  writer.add({.class_number = 1, .image = bytes, .mask = bytes}, 1, "b.jpg");
  datasets::write_manifest(folder, {.source = "test",
                                    .packing = "as it is",
                                    .class_names = {"cats", "dogs"},
                                    .shards = {writer.finish({"cats", "dogs"})}});
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::cerr << "usage: seeds FOLDER\n";
    return 2;
  }
  fs::remove_all(words[1]);
  Seeds seeds(words[1]);
  add_jpegs(seeds);
  add_pngs(seeds);
  add_other_images(seeds);
  add_digits(seeds);
  add_packed(seeds);
  return 0;
}
