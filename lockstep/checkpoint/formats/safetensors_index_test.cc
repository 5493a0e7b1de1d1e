#include "lockstep/checkpoint/formats/safetensors_index.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/safetensors_writer.h"
#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;
using testing::HasSubstr;
namespace fs = std::filesystem;

class SafetensorsIndex : public testing::Test {
 protected:
  SafetensorsIndex() {
    fs::create_directories(folder_);
    write_safetensors(Dict{{"a", at::full({2}, 1.F)}, {"c", at::full({}, 3.F)}}, folder_ + "/one.safetensors");
    write_safetensors(Dict{{"b", at::full({3}, 2.F)}}, folder_ + "/two.safetensors");
  }
  void write_index(const std::string& map) const {
    write_file(index_, R"({"metadata": {"total_size": 24, "more": [1, {}]}, "weight_map": {)" + map + "}}");
  }
  std::string refusal(const std::string& map) const {
    write_index(map);
    return error_of<DataError>([&] { read_checkpoint(index_); });
  }
  TempDir dir_;
  std::string folder_ = dir_ / "model", index_ = folder_ + "/model.safetensors.index.json";
  const std::string one_ = R"("a": "one.safetensors", "c": "one.safetensors")", two_ = R"("b": "two.safetensors")";
};

TEST_F(SafetensorsIndex, JoinsTheShardsInItsOrder) {
  write_index(two_ + ", " + one_);
  for (const std::string& path : {index_, folder_}) {
    const Value value = read_checkpoint(path);
    std::string names;
    for (const auto& [key, tensor] : *value.get_if<Dict>()) names += key_text(key) + " ";
    EXPECT_EQ(names, "__metadata__ b a c ");
    EXPECT_EQ(value.get_if<Dict>()->find("b")->get_if<at::Tensor>()->sum().item<float>(), 6);
  }
}

TEST_F(SafetensorsIndex, RefusesNamesWithAPath) {
  for (const std::string name :
       {"../model/one.safetensors", "/etc/x.safetensors", "a\\\\x.safetensors", "..", "", ".safetensors", "one.pt",
        "a\\u0000.safetensors", "a\\n.safetensors", "\x7f.safetensors"}) {
    EXPECT_THAT(refusal("\"a\": \"" + name + "\""), HasSubstr("which is no name of a .safetensors")) << name;
  }
}

TEST_F(SafetensorsIndex, FollowsLinksOnlyWithinTheFolder) {
  fs::rename(folder_ + "/two.safetensors", dir_ / "outside.safetensors");
  fs::create_symlink(dir_ / "outside.safetensors", folder_ + "/two.safetensors");
  EXPECT_THAT(refusal(one_ + "," + two_), HasSubstr("two.safetensors: a link that leads out of the index's folder"));
  fs::remove(folder_ + "/two.safetensors");
  fs::rename(dir_ / "outside.safetensors", folder_ + "/2");
  fs::create_symlink("2", folder_ + "/two.safetensors");
  EXPECT_EQ(refusal(one_ + "," + two_), "no error");
}

// As the cache of the hub: snapshots/model.safetensors.index.json -> ../blobs/1, and so on.
TEST_F(SafetensorsIndex, FollowsLinksToTheFolderOfALinkedIndex) {
  write_index(one_ + "," + two_);
  fs::create_directories(dir_ / "snapshot");
  for (const char* name : {"one.safetensors", "two.safetensors", "model.safetensors.index.json"}) {
    fs::create_symlink(folder_ + "/" + name, dir_ / ("snapshot/" + std::string(name)));
  }
  EXPECT_EQ(read_checkpoint(dir_ / "snapshot").get_if<Dict>()->size(), 4u);
}

TEST_F(SafetensorsIndex, RefusesShardsThatDisagree) {
  EXPECT_THAT(refusal(one_ + R"(, "x": "two.safetensors")"), HasSubstr("x: two.safetensors holds no such tensor"));
  EXPECT_THAT(refusal(R"("a": "one.safetensors")"),
              HasSubstr("one.safetensors holds 2 tensors, and the index lists 1"));
  EXPECT_THAT(refusal(R"("a": "three.safetensors")"), HasSubstr("three.safetensors: there is no such file"));
  write_file(folder_ + "/bad.safetensors", "PK\x03\x04 and so on");
  EXPECT_THAT(refusal(R"("a": "bad.safetensors")"), HasSubstr("no safetensors file"));
}

TEST_F(SafetensorsIndex, RefusesWhatIsNoIndex) {
  EXPECT_THAT(refusal(R"("a": 1)"), HasSubstr("weight_map/a: no name of a file"));
  EXPECT_THAT(refusal(R"("a": {"b": "one.safetensors"})"), HasSubstr("weight_map/a: no name of a file"));
  EXPECT_THAT(refusal(""), HasSubstr("no \"weight_map\" of tensors"));
  EXPECT_THAT(refusal(one_ + "," + one_), HasSubstr("weight_map/a: comes twice"));
  write_file(index_, R"({"weight_map": ["one.safetensors"]})");
  EXPECT_THAT(error_of<DataError>([&] { read_checkpoint(index_); }), HasSubstr("weight_map: no name of a file"));
  write_file(index_, R"({"version": 1})");
  EXPECT_THAT(error_of<DataError>([&] { read_checkpoint(index_); }), HasSubstr("JSON, but no index"));
}

TEST_F(SafetensorsIndex, FindsTheFileOfAFolder) {
  EXPECT_THAT(error_of<DataError>([&] { find_safetensors(folder_); }), HasSubstr("has 2 .safetensors files and no"));
  fs::remove(folder_ + "/two.safetensors");
  EXPECT_EQ(find_safetensors(folder_), folder_ + "/one.safetensors");
  write_index(one_);
  EXPECT_EQ(find_safetensors(folder_), index_);
  EXPECT_EQ(find_safetensors(dir_.path()), std::nullopt);
  EXPECT_THAT(error_of<DataError>([&] { read_checkpoint(dir_.path()); }), HasSubstr("a directory"));
}

}  // namespace
}  // namespace lockstep::checkpoint
