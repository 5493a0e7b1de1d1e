#include "lockstep/checkpoint/formats/read_from_disk.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/files/page_cache.h"
#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;
using testing::HasSubstr;

// A file that lies on the disk alone, read by one of so many ranks of this machine.
class ReadFromDisk : public testing::TestWithParam<const char*> {
 protected:
  ReadFromDisk() { setenv("LOCAL_WORLD_SIZE", GetParam(), 1); }
  ~ReadFromDisk() override { unsetenv("LOCAL_WORLD_SIZE"); }
  void SetUp() override {
    write_pt(root_, path_);
    if (!put_out_of_memory()) GTEST_SKIP() << "this folder lies in memory, not on a disk: " << path_;
  }

  bool put_out_of_memory() {
    const InputFile file = open_input(path_);
    fsync(file.fd.get());
    posix_fadvise(file.fd.get(), 0, 0, POSIX_FADV_DONTNEED);
    return StoredFile(path_, file).was_on_disk();
  }

  // Whether the system has the middle of the largest tensor, whose numbers end the file.
  bool is_in_memory() const {
    const InputFile file = open_input(path_);
    return is_in_page_cache(file.fd.get(), file.bytes - 8'000'000);
  }

  static const at::Tensor& tensor_of(const Value& root, const std::string& name) {
    return *root.get_if<Dict>()->find(name)->get_if<at::Tensor>();
  }

  // What is read where the model's memory is there already.
  at::Tensor copied(const ReadOptions& options, const std::string& name) {
    const Value opened = open_checkpoint(path_, options);
    at::Tensor to = at::zeros_like(tensor_of(root_, name));
    copy_elements(to, tensor_of(opened, name));
    return to;
  }

  void damage() {
    std::string content = read_file(path_);
    content[content.size() - 8'000'000] ^= 1;
    write_file(path_, content);
    put_out_of_memory();
  }

  const TempDir dir_;
  const std::string path_ = dir_ / "a.pt";
  // Their ends lie within blocks of the disk's and of ours, and between them is more and less than one reads through.
  const Value root_ = Dict{{"one", at::full({1}, 7.0F)},
                           {"some", at::rand({20'011})},
                           {"more", at::rand({1'500'001})},
                           {"bytes", at::randint(256, {70'003}, at::kByte)},
                           {"none", at::empty({0})},
                           {"doubles", at::rand({99'999}, at::kDouble)},
                           {"large", at::arange(5'000'000, at::kFloat)}};
};

TEST_P(ReadFromDisk, HasTheFilesNumbers) {
  for (const auto& [key, value] : *root_.get_if<Dict>()) {
    const std::string name = key_text(key);
    for (const bool on_the_way : {false, true}) {
      put_out_of_memory();
      EXPECT_TRUE(at::equal(copied({.checks_on_the_way = on_the_way}, name), *value.get_if<at::Tensor>())) << name;
    }
  }
  put_out_of_memory();
  const Value read = read_checkpoint(path_);
  for (const auto& [key, value] : *root_.get_if<Dict>()) {
    EXPECT_TRUE(at::equal(tensor_of(read, key_text(key)), *value.get_if<at::Tensor>())) << key_text(key);
  }
}

// The disk is read once by all ranks of a machine, and a lone reader leaves the system's memory to others.
TEST_P(ReadFromDisk, FillsTheSystemsMemoryForOthersAlone) {
  copied({.checks_on_the_way = true}, "large");
  EXPECT_EQ(is_in_memory(), GetParam() != std::string("1"));
}

// It is read a second time, into the model.
TEST_P(ReadFromDisk, WhatIsComparedBeforeStaysInMemory) {
  const Value opened = open_checkpoint(path_);
  EXPECT_TRUE(is_in_memory());
}

TEST_P(ReadFromDisk, DamageIsFound) {
  damage();
  EXPECT_THROW(open_checkpoint(path_), DataError);
  put_out_of_memory();
  const Value opened = open_checkpoint(path_, {.checks_on_the_way = true});
  at::Tensor to = at::zeros({5'000'000});
  try {
    copy_elements(to, tensor_of(opened, "large"));
    FAIL() << "damage was read";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("damaged (CRC error)"));
  }
  EXPECT_TRUE(to.isnan().all().item<bool>());
}

TEST_P(ReadFromDisk, AFileThatIsCutMeanwhileIsAnError) {
  const Value opened = open_checkpoint(path_, {.checks_on_the_way = true});
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 9'000'000);
  at::Tensor to = at::zeros({5'000'000});
  EXPECT_THROW(copy_elements(to, tensor_of(opened, "large")), DataError);
}

INSTANTIATE_TEST_SUITE_P(Ranks, ReadFromDisk, testing::Values("1", "2"),
                         [](const auto& info) { return std::string("Of") + info.param; });

}  // namespace
}  // namespace lockstep::checkpoint
