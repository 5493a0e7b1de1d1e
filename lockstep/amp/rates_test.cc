#include "lockstep/amp/rates.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace lockstep::amp {
namespace {

namespace fs = std::filesystem;

class RatesTest : public testing::Test {
 protected:
  void TearDown() override { fs::remove_all(folder_); }
  std::string only_file() const { return fs::directory_iterator(folder_)->path(); }

  std::string folder_ = testing::TempDir() + "rates." + std::to_string(getpid());
};

TEST_F(RatesTest, EveryMachineHasAnFp32Rate) {
  const int threads = at::get_num_threads();
  const Rates rates = measure_rates();
  EXPECT_GT(rates.fp32, 0.1);
  EXPECT_GE(rates.bf16, 0);
  EXPECT_GE(rates.fp16, 0);
  EXPECT_EQ(at::get_num_threads(), threads);
}

TEST_F(RatesTest, AreRemembered) {
  EXPECT_FALSE(read_rates(folder_));
  ASSERT_TRUE(write_rates(folder_ + "/deep", {90.5, 450, 300}));
  ASSERT_TRUE(write_rates(folder_ + "/deep", {91.5, 450, 0}));
  const auto rates = read_rates(folder_ + "/deep");
  ASSERT_TRUE(rates);
  EXPECT_EQ(rates->fp32, 91.5);
  EXPECT_EQ(rates->bf16, 450);
  EXPECT_EQ(rates->fp16, 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_ + "/deep"), {}), 1) << "nothing lies beside it";
}

TEST_F(RatesTest, ADamagedFileCountsAsNone) {
  ASSERT_TRUE(write_rates(folder_, {90, 450, 300}));
  std::string whole;
  std::getline(std::ifstream(only_file()), whole, '\0');
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[1]"), whole.substr(0, whole.size() / 2),
        std::string(R"({"machine": "another", "fp32": 1, "bf16": 1, "fp16": 1})")}) {
    std::ofstream(only_file()) << text;
    EXPECT_FALSE(read_rates(folder_)) << text;
  }
  whole.replace(whole.find("90"), 2, "-1");
  std::ofstream(only_file()) << whole;
  EXPECT_FALSE(read_rates(folder_));
}

TEST_F(RatesTest, AFolderThatCantBeWrittenIsNoError) {
  std::ofstream(folder_) << "a file";
  EXPECT_FALSE(write_rates(folder_, {1, 1, 1}));
  EXPECT_FALSE(write_rates("", {1, 1, 1}));
  EXPECT_FALSE(read_rates(""));
}

TEST_F(RatesTest, TheFolderIsTheUsersCache) {
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(cache_folder(), "/somewhere/lockstep");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(cache_folder(), "/home/me/.cache/lockstep");
}

}  // namespace
}  // namespace lockstep::amp
