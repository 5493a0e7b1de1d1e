// A checkpoint that is cut short or whose bits have flipped: told, and passed over for an older one that is whole;
// never read as other values.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/formats/testing/files.h"
#include "saves.h"

namespace lockstep::faults {
namespace {

using checkpoint::CheckpointStore;
using checkpoint::testing_support::read_file;
using checkpoint::testing_support::TempDir;
using checkpoint::testing_support::write_file;
using ::testing::SizeIs;

constexpr size_t kPage = 4096, kEnd = 1024;

// A folder with two checkpoints, of which tests damage the newer one.
class DamagedFile : public ::testing::Test {
 protected:
  DamagedFile() {
    CheckpointStore store(dir_.path());
    store.save(1, state_of(1, Size::kSmall));
    path_ = store.save(2, small());
    whole_ = read_file(path_);
    values_ = checkpoint::describe(small());
  }

  // Some of every kind of value that a checkpoint holds.
  static checkpoint::Value small() {
    using checkpoint::Dict;
    using checkpoint::List;
    const at::Tensor weight = at::arange(600, at::kFloat).reshape({20, 30});
    return Dict{{"model", Dict{{"weight", weight}, {"rows", weight.narrow(0, 3, 2)}, {"steps", at::arange(9)}}},
                {"optimizer", Dict{{"state", Dict{{0, Dict{{"step", at::ones({})}}}}}, {"betas", List{0.9, 0.999}}}},
                {"rng", Dict{{"key", checkpoint::Bytes{"\x01\xff"}}, {"seed", 1234567}}},
                {"name", "run"},
                {"done", false},
                {"none", checkpoint::Value()}};
  }

  // The newer one can't be read, which is said, and the older one is taken.
  void expect_fallback() {
    const auto loaded = CheckpointStore(dir_.path()).load_newest();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->saved.step, 1);
    ASSERT_THAT(loaded->damaged, SizeIs(1));
    EXPECT_EQ(loaded->damaged[0].path, path_);
    EXPECT_THAT(loaded->damaged[0].why, ::testing::StartsWith(path_ + ": "));
    EXPECT_EQ(loaded->damaged[0].why.find('\n'), std::string::npos);
  }

  TempDir dir_;
  std::string path_, whole_;
  nlohmann::ordered_json values_;
};

TEST_F(DamagedFile, CutShortAtAnyPageIsPassedOver) {
  CheckpointStore store(dir_.path());
  path_ = store.save(2, state_of(2, Size::kSmall));
  whole_ = read_file(path_);
  ASSERT_GT(whole_.size(), 8 * kPage);
  for (size_t size = 0; size < whole_.size(); size += kPage) {
    std::filesystem::resize_file(path_, size);
    ASSERT_NO_FATAL_FAILURE(expect_fallback()) << size;
    write_file(path_, whole_);
  }
}

TEST_F(DamagedFile, CutShortAtAnyByteOfItsEndIsPassedOver) {
  for (size_t lost = 1; lost <= kEnd; ++lost) {
    std::filesystem::resize_file(path_, whole_.size() - lost);
    ASSERT_NO_FATAL_FAILURE(expect_fallback()) << lost;
  }
}

TEST_F(DamagedFile, FlippedBitsAreToldOrChangeNoValue) {
  const int64_t flips = 10'000 * samples_factor();
  std::mt19937_64 draw(seed());
  int64_t told = 0;
  std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](size_t at, char byte) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
    file.flush();
  };
  for (int64_t i = 0; i < flips; ++i) {
    const size_t at = draw() % whole_.size();
    const int bit = static_cast<int>(draw() % 8);
    put(at, static_cast<char>(whole_[at] ^ (1 << bit)));
    try {
      ASSERT_EQ(checkpoint::describe(checkpoint::read_pt(path_)), values_) << "bit " << bit << " of byte " << at;
    } catch (const DataError& error) {
      ++told;
      ASSERT_EQ(std::string(error.what()).rfind(path_ + ": ", 0), 0u) << error.what();
      ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
    put(at, whole_[at]);
  }
  // Names, sizes and padding of the archive are not covered by its checksums.
  EXPECT_GT(told, flips / 2);
}

}  // namespace
}  // namespace lockstep::faults
