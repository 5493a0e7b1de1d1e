#include "lockstep/checkpoint/contents/check_file.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/formats/pt_writer.h"
#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::checkpoint {
namespace {

using namespace testing_support;
using testing::HasSubstr;
using testing::StartsWith;

class CheckFile : public testing::Test {
 protected:
  CheckFile() { write_pt(Dict{{"t", at::arange(1000)}, {"n", 1}, {"s", "x"}}, path_); }

  TempDir dir_;
  std::string path_ = dir_ / "a.pt";
};

TEST_F(CheckFile, TellsWhatAWholeOneHolds) {
  const CheckedFile checked = check_file(path_);
  EXPECT_EQ(checked.tensors, 1u);
  EXPECT_EQ(checked.values, 2u);
  EXPECT_EQ(checked.bytes, std::filesystem::file_size(path_));
}

TEST_F(CheckFile, PassesWhatPyTorchHasWritten) {
  for (const auto& each : std::filesystem::directory_iterator(fixtures() + "/checkpoints")) {
    if (each.path().extension() != ".pt") continue;
    EXPECT_GT(check_file(each.path()).tensors, 0u) << each.path();
  }
}

// No tensor needs the entry "version".
TEST_F(CheckFile, FindsDamageThatReadingPassesOver) {
  std::string content = read_file(path_);
  content[content.find("3\n", content.find("archive/version"))] = '4';
  write_file(path_, content);
  EXPECT_THAT(error_of<DataError>([&] { check_file(path_); }), HasSubstr("archive/version"));
}

TEST_F(CheckFile, ComparesAnEntrysTwoHeaders) {
  constexpr size_t kToChecksum = 14;
  std::string content = read_file(path_);
  content[kToChecksum] ^= 1;  // of the first entry's own header
  write_file(path_, content);
  EXPECT_THAT(error_of<DataError>([&] { check_file(path_); }), StartsWith(path_ + ": "));
}

TEST_F(CheckFile, ReadsTheFormatBeforeTheArchives) {
  EXPECT_GT(check_file(fixtures() + "/checkpoints/legacy_not_zip.pt").tensors, 0u);
  write_file(path_, "PK\3\4");
  EXPECT_THAT(error_of<DataError>([&] { check_file(path_); }), HasSubstr("cut short or damaged"));
  write_file(path_, "PK");
  EXPECT_THAT(error_of<DataError>([&] { check_file(path_); }), HasSubstr("neither a checkpoint"));
}

}  // namespace
}  // namespace lockstep::checkpoint
