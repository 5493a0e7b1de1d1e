// What a run does with pictures that are none, and with folders in which something is wrong: one line, the right exit
// code, and no waiting.
#include "lockstep/image/testing/bad_pictures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "pictures.h"
#include "runs.h"

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using image::testing_support::BadPicture;
using ::testing::HasSubstr;

// One step, which takes up to `batch` pictures.
Words one_step(const std::string& recipe, const std::string& data, const std::string& run, const char* batch = "8") {
  const Words words = {"train",        recipe, "--data",  data, "--out",     run, "--nproc", "1", "--lanes", "1",
                       "--batch-size", batch,  "--steps", "1",  "--threads", "1", "--size",  "32"};
  return words + (recipe == "unet" ? Words{"--width", "4"} : Words{"--arch", "mobilenet_v2"});
}

// Lines of which the last begins with "error: " and holds `what`; no control characters.
void expect_refused(const Result& result, int exit_code, const std::string& what) {
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  size_t errors = 0;
  for (size_t begin = 0; begin < result.err.size();) {
    const size_t end = std::min(result.err.find('\n', begin), result.err.size());
    const std::string line = result.err.substr(begin, end - begin);
    EXPECT_EQ(line, shown(line)) << "control characters";
    errors += line.starts_with("error: ");
    begin = end + 1;
  }
  EXPECT_EQ(errors, 1u) << result.err;
  EXPECT_THAT(result.err, HasSubstr(what));
}

void write_picture(const std::string& path, const std::vector<uint8_t>& bytes) {
  write_file(path, std::string(bytes.begin(), bytes.end()));
}

// One of each kind that ends a run in its own way.
TEST(BadPictures, EndARunWithTheirName) {
  const std::vector<std::string> names = {"JPEG: 80,000 baseline scans", "JPEG: 65500 x 65500 progressive",
                                          "PNG: 100,000 x 100,000",      "PNG: pixels that are no zlib",
                                          "GIF: LZW of 255 bits",        "npy: a pickle",
                                          "npy: control characters",     "other: a page"};
  const auto all = image::testing_support::bad_pictures();
  const TempDir dir;
  write_class_folders(dir / "data", 2, 2);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const auto found = std::find_if(all.begin(), all.end(), [&](const BadPicture& each) { return each.name == name; });
    ASSERT_NE(found, all.end());
    const std::string path = dir / "data/class_00/bad one.jpg";
    write_picture(path, found->bytes);
    const auto result = lockstep(one_step("imagenet", dir / "data", dir / "run") + Words{"--overwrite"});
    expect_refused(result, DataError::kExitCode, path + ": ");
    EXPECT_THAT(result.err, HasSubstr(found->why));
  }
}

// What is odd and sound is trained on.
TEST(BadPictures, ThatAreSoundAreTrainedOn) {
  const auto all = image::testing_support::bad_pictures();
  const TempDir dir;
  write_class_folders(dir / "data", 2, 1);
  int count = 0;
  for (const BadPicture& each : all) {
    if (each.outcome != image::testing_support::Outcome::kDecoded) continue;
    write_picture(dir / cat("data/class_0", count % 2, "/odd ", count, "\n\x1b[31m.jpg"), each.bytes);
    ++count;
  }
  ASSERT_GT(count, 15);
  const auto result = lockstep(one_step("imagenet", dir / "data", dir / "run", "64"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const auto resumed = lockstep({"train", "--resume", dir / "run", "--steps", "2"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
}

struct BadData {
  const char* name;
  const char* recipe;
  std::function<void(const std::string& data)> spoil;
  const char* what;
};

const std::vector<BadData>& bad_data() {
  static const std::vector<BadData> kAll = {
      {"an empty class", "imagenet", [](const std::string& data) { fs::create_directory(data + "/eels"); },
       "/eels: a class folder without images"},
      {"a pipe", "imagenet", [](const std::string& data) { mkfifo((data + "/class_00/a.jpg").c_str(), 0600); },
       "/class_00/a.jpg: is a device, pipe or socket"},
      {"a link to nothing", "imagenet",
       [](const std::string& data) { fs::create_symlink("gone", data + "/class_00/a.jpg"); },
       "/class_00/a.jpg: can't be"},
      {"a link in a circle", "imagenet",
       [](const std::string& data) { fs::create_symlink("..", data + "/class_00/up"); }, "/class_00/up: leads back"},
      {"a page whose name has lines", "imagenet",
       [](const std::string& data) { write_file(data + "/class_00/a\n\x1b[31m.jpg", "<html></html>"); },
       "/class_00/a\\n\\x1b[31m.jpg: it is no image"},
      {"half a CIFAR", "imagenet",
       [](const std::string& data) { write_file(data + "/data_batch_1.bin", std::string(3000, 'x')); },
       "/data_batch_1.bin: 3000 bytes are no whole images"},
      {"a page for records", "imagenet",
       [](const std::string& data) { write_file(data + "/train.rec", "<html></html>"); },
       "/train.rec: byte 0: no RecordIO record"},
      {"a manifest of brackets", "imagenet",
       [](const std::string& data) { write_file(data + "/manifest.json", std::string(1 << 20, '[')); },
       "/manifest.json: no manifest"},
      {"a smaller mask", "unet",
       [](const std::string& data) {
         fs::copy_file(data + "/small.png", data + "/masks/1.png", fs::copy_options::overwrite_existing);
       },
       "/masks/1.png: a mask of 20 x 20 pixels"},
      {"an image with an alpha channel", "unet",
       [](const std::string& data) {
         write_picture(data + "/imgs/1.png",
                       image::encode_png(class_picture(0, 1, 0, 96), {.colour = image::PngColour::kAlpha}));
       },
       "/imgs/1.png: the network has 3 input channels, and the image 4"},
      {"a mask that can't be told", "unet",
       [](const std::string& data) {
         write_picture(data + "/imgs/1.png", image::encode_png(class_picture(0, 1, 0, 96), {.orientation = 3}));
         const auto size = class_picture(0, 1, 0, 96).size();
         image::Pixels mask = image::testing_support::flat(size, 1, 0);
         *mask.at(3, 3) = 255;
         write_picture(data + "/masks/1.png", image::encode_png(mask));
       },
       "--exif both"},
  };
  return kAll;
}

TEST(BadFolders, EndARunWithTheirName) {
  for (const BadData& each : bad_data()) {
    SCOPED_TRACE(each.name);
    const TempDir dir;
    const std::string data = dir / "data";
    if (each.recipe == std::string("unet")) {
      write_image_and_mask_folders(data, 3);
      write_picture(data + "/small.png", image::encode_png(image::testing_support::flat({20, 20}, 1, 255)));
    } else {
      write_class_folders(data, 2, 2);
    }
    each.spoil(data);
    const auto result = lockstep(one_step(each.recipe, data, dir / "run"));
    expect_refused(result, DataError::kExitCode, each.what);
    EXPECT_THAT(result.err, HasSubstr(data));
  }
}

// The weights' file is not to blame.
TEST(BadPictures, OfOtherChannelsThanTheLoadedNetworkAreNamed) {
  const TempDir dir;
  write_image_and_mask_folders(dir / "grey", 3);
  write_image_and_mask_folders(dir / "mixed", 3);
  write_picture(dir / "mixed/imgs/1.png", image::encode_png(image::testing_support::flat({96, 96}, 3, 9)));
  const auto network_of = [&](const std::string& data) {
    const std::string run = dir / ("run of " + data);
    EXPECT_EQ(lockstep(one_step("unet", dir / data, run, "1")).exit_code, 0);
    return run + "/checkpoints/last.pt";
  };
  const std::string grey = network_of("grey"), mixed = network_of("mixed");
  const std::string one = "/mixed/imgs/1.png: the network of " + grey + " has 1 input channel, and the image 3; load ",
                    three =
                        "/grey/imgs/0.png: the network of " + mixed + " has 3 input channels, and the image 1; load ";
  const auto run = [&](const std::string& data, const std::string& file) {
    expect_refused(lockstep(one_step("unet", dir / data, dir / "next") + Words{"--load", file}), DataError::kExitCode,
                   data == "mixed" ? one : three);
    expect_refused(lockstep({"eval", "unet", "--load", file, "--width", "4", "--size", "32", "--data", dir / data}),
                   DataError::kExitCode, data == "mixed" ? one : three);
  };
  run("mixed", grey);
  run("grey", mixed);
}

// The end of a command on the disk of failing_disk.cc.
Result on_failing_disk(const Words& words) {
  const std::string library = bin_folder() + "/failing_disk.so";
  EXPECT_TRUE(fs::exists(library));
  Program::Options options = lockstep_command(words);
  const Words preload = {"/usr/bin/env", "LD_PRELOAD=" + library};
  options.command.insert(options.command.begin(), preload.begin(), preload.end());
  return Program(options).wait();
}

TEST(BadFolders, ADiskThatFailsIsTheMachinesFault) {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "a sanitizer comes before every library";
#endif
  const TempDir dir;
  write_class_folders(dir / "data", 1, 2);
  fs::create_directory(dir / "data/failing_disk");
  fs::copy_file(dir / "data/class_00/0.jpg", dir / "data/failing_disk/0.jpg");
  expect_refused(on_failing_disk(one_step("imagenet", dir / "data", dir / "run")), IoError::kExitCode,
                 "/failing_disk/0.jpg: byte 0: can't be read: Input/output error");
}

// A run would do without its part to test on, or take the data for others.
TEST(BadFolders, ALostMountIsNotTakenForNothing) {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "a sanitizer comes before every library";
#endif
  const TempDir dir;
  write_class_folders(dir / "data/train", 1, 2);
  fs::create_symlink("lost_mount", dir / "data/val");
  expect_refused(on_failing_disk(one_step("imagenet", dir / "data", dir / "run")), IoError::kExitCode,
                 "/data/val: can't be looked at: Input/output error");
  const Words digits = {"train", "mnist", "--data", dir / "digits", "--out", dir / "run", "--nproc", "1"};
  fs::create_directory(dir / "digits");
  fs::create_symlink("lost_mount", dir / "digits/train-images-idx3-ubyte");
  expect_refused(on_failing_disk(digits), IoError::kExitCode,
                 "/digits/train-images-idx3-ubyte: can't be looked at: Input/output error");
}

}  // namespace
}  // namespace lockstep::e2e
