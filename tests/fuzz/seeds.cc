// Writes small sound files for the fuzzing programs to begin with: seeds FOLDER writes FOLDER/jpeg/0 and so on.
#include <ATen/ATen.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <span>

#include "lockstep/checkpoint/files/byte_sink.h"
#include "lockstep/checkpoint/formats/paddle_writer.h"
#include "lockstep/checkpoint/formats/pickle_writer.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/safetensors_writer.h"
#include "lockstep/checkpoint/formats/testing/legacy_file.h"
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

void add_checkpoints(Seeds& seeds) {
  using namespace checkpoint;
  using namespace checkpoint::testing_support;
  const at::Tensor weight = at::arange(12, at::kFloat).view({3, 4});
  const Dict state{{"weight", weight}, {"part", weight.t().slice(0, 1, 3)}, {"step", at::ones({}, at::kLong)}};
  const Dict all{{"model", state}, {"lr", 0.1}, {"betas", Tuple{{0.9, 0.999}}}, {"names", List{"a", Value(), true}}};
  for (const Dict& root : {state, all}) {
    StringSink sink;
    write_pt(root, sink);
    seeds.add("pt", sink.content);
  }
  StringSink sink;
  write_safetensors(state, sink);
  seeds.add("safetensors", sink.content);
  seeds.add("safetensors", std::string(R"({"metadata":{"total_size":8},"weight_map":{"a":"one.safetensors"}})"));
  seeds.add("pt_legacy", legacy::kMagic + legacy::kVersion + legacy::kSystem + legacy::kTensor + legacy::kKeys +
                             legacy::kTwo + legacy::kContent);
}

void add_pickles(Seeds& seeds) {
  using namespace lockstep::checkpoint;
  const Value values[] = {
      Dict{{"model", Dict{{"w", at::ones({2, 3})}, {"v", at::ones({2}, at::kUInt16)}}}, {"epoch", 5}, {"amp", Value()}},
      Dict{{"lr", 0.1}, {7, List{true, "text", Tuple{{int64_t{1} << 40, -1}}}}, {"bytes", Bytes{"\x80\xff"}}},
      Dict{{"fc.weight", at::ones({2, 3})},
           {"bn._mean", at::zeros({4}, at::kHalf)},
           {"steps", at::full({}, 3, at::kLong)}}};
  for (const Value& value : values) {
    for (const char* first : {"0", "1"}) seeds.add("pickle", first + write_pickle(value, StoragePlan(value)));
  }
  StringSink paddles;
  write_paddle(values[2], paddles);
  for (const char* first : {"0", "1"}) seeds.add("pickle", first + paddles.content);
  seeds.add("pickle", std::string("1\x80\x02}X\x04\x00\x00\x00"
                                  "argscargparse\nNamespace\n)\x81}X\x02\x00\x00\x00lrK\x01sbs.",
                                  49));
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
  add_checkpoints(seeds);
  add_pickles(seeds);
  return 0;
}
