// The larger networks, trained by name on data drawn on the spot: a few steps of small images.
#include <gtest/gtest.h>

#include <chrono>

#include "lockstep/base/testing/long_test.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

struct Network {
  const char* name;
  Words words;    // after `train`
  Words metrics;  // of final.json
};

const Network kResnet18{"resnet18", {"imagenet", "--size", "32"}, {"top1", "top5"}};
const Network kResnet50{"resnet50", {"imagenet", "--arch", "resnet50", "--size", "32"}, {"top1", "top5"}};
const Network kMobilenet{"mobilenet_v2", {"imagenet", "--arch", "mobilenet_v2", "--size", "32"}, {"top1", "top5"}};
// An eighth of its width, so half a million parameters instead of 31 million.
const Network kUnet{"unet", {"unet", "--size", "16", "--width", "8"}, {"dice", "dice_per_class"}};

Words words_of(const Network& network, const std::string& run, const Words& more) {
  return Words{"train"} + network.words + Words{"--lanes", "4", "--batch-size", "2", "--steps", "2", "--out", run} +
         more;
}

struct Case {
  Network network;
  const char* amp;
  Words ranks;
  bool sync_bn = false;
  Words more = {};

  // All but some that together have each network, most levels and a BatchNorm over all lanes.
  bool is_long() const {
    const std::string name = network.name, level = amp;
    if (name == kResnet18.name) return level != "O1" || !sync_bn;
    if (name == kMobilenet.name) return level != "O2" || !more.empty();
    return name != kUnet.name || level != "O0";
  }
};

class SameBitsOfNetworks : public ::testing::TestWithParam<Case> {};

TEST_P(SameBitsOfNetworks, AtAnyNumberOfRanks) {
  LOCKSTEP_LONG_TEST_IF(GetParam().is_long());
  const auto& [network, amp, ranks, sync_bn, more] = GetParam();
  const TempDir dir;
  nlohmann::json one;
  for (const auto& nproc : ranks) {
    Words words = words_of(network, dir / nproc, Words{"--amp", amp, "--nproc", nproc} + more);
    if (sync_bn) words.push_back("--sync-bn");
    const auto result = lockstep(words, ".", std::chrono::seconds(200));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto outcome = outcome_of(dir / nproc);
    if (one.is_null()) one = outcome;
    EXPECT_EQ(outcome, one) << nproc << " ranks";
  }
  EXPECT_EQ(one.at("weights_sha256").get<std::string>().size(), 64u);
  EXPECT_EQ(one.at("metrics").size(), network.metrics.size());
  for (const auto& metric : network.metrics) EXPECT_TRUE(one.at("metrics").contains(metric)) << one;
}

const Words kFew = {"1", "4"}, kAll = {"1", "2", "4"};
INSTANTIATE_TEST_SUITE_P(
    All, SameBitsOfNetworks,
    ::testing::Values(Case{kResnet18, "O0", kFew}, Case{kResnet18, "O1", kAll}, Case{kResnet50, "O1", kFew},
                      Case{kMobilenet, "O0", kFew}, Case{kMobilenet, "O1", kAll}, Case{kUnet, "O0", {"1", "2"}},
                      Case{kUnet, "O1", kAll}, Case{kResnet18, "O1", kAll, true}, Case{kMobilenet, "O1", kAll, true},
                      Case{kUnet, "O1", kAll, true}, Case{kUnet, "O2", {"1", "4"}}, Case{kResnet18, "O2", kAll, true},
                      Case{kMobilenet, "O2", kAll}, Case{kResnet18, "O3", kAll},
                      Case{kMobilenet, "O2", kFew, false, {"--dtype", "fp16", "--keep-batchnorm-fp32", "off"}}),
    [](const auto& info) {
      return std::string(info.param.network.name) + info.param.amp + (info.param.sync_bn ? "SyncBatchNorm" : "") +
             (info.param.more.empty() ? "" : "Fp16WithItsBatchNorm");
    });

TEST(AmpAuto, GoesOnWithTheCheckpointsBatchNorm) {
  LOCKSTEP_LONG_TEST_IF(true);
  const TempDir dir;
  const std::string run = dir / "run";
  ASSERT_EQ(lockstep(words_of(kMobilenet, run, {"--amp", "O2", "--keep-batchnorm-fp32", "off"})).exit_code, 0);
  const auto on =
      lockstep({"train", "imagenet", "--arch", "mobilenet_v2", "--resume", run, "--steps", "3", "--amp", "auto"});
  EXPECT_EQ(on.exit_code, 0) << on.err;
  EXPECT_NE(on.out.find("O2 bfloat16, BatchNorm too (auto: as in the checkpoint)"), std::string::npos) << on.out;
}

TEST(Arch, IsRememberedByTheRunAndItsCheckpoints) {
  LOCKSTEP_LONG_TEST_IF(true);
  const TempDir dir;
  const std::string run = dir / "run", checkpoint = run + "/checkpoints/last.pt";
  ASSERT_EQ(lockstep(words_of(kMobilenet, run, {})).exit_code, 0);
  EXPECT_EQ(final_of(run).at("arch"), "mobilenet_v2");
  EXPECT_NE(read_file(run + "/config.toml").find("arch = 'mobilenet_v2'"), std::string::npos);

  const auto other = lockstep({"train", "imagenet", "--arch", "resnet18", "--resume", run, "--steps", "3"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("it was trained with --arch mobilenet_v2, this run has --arch resnet18"), std::string::npos)
      << other.err;
  const auto same = lockstep({"train", "imagenet", "--resume", run, "--steps", "3"});
  EXPECT_EQ(same.exit_code, 0) << same.err;

  const auto eval = lockstep({"eval", "imagenet", "--load", checkpoint, "--json"});
  const auto found = nlohmann::json::parse(eval.out), metrics = final_of(run).at("metrics");
  for (const auto& [name, value] : metrics.items()) EXPECT_EQ(found.at(name), value) << eval.err;
}

TEST(ScaleLr, IsShownInTheHeader) {
  const TempDir dir;
  const auto result = lockstep({"train", "mnist", "--data", digits_folder(), "--batch-size", "8", "--lanes", "4",
                                "--lr", "0.1", "--scale-lr", "linear=8", "--steps", "2", "--out", dir / "run"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("lr 0.4 = 0.1 × 4 (linear, global batch 32 ÷ 8)"), std::string::npos) << result.out;
}

// The error names the network that the weights are of.
TEST(Networks, WeightsOfAnotherOneAreRefused) {
  const TempDir dir;
  const Words small = {"--size", "64", "--lanes", "1", "--nproc", "1", "--batch-size", "2", "--steps", "1"};
  ASSERT_EQ(lockstep(Words{"train", "imagenet", "--out", dir / "run"} + small).exit_code, 0);
  const std::string weights = dir / "run/checkpoints/last.pt";
  for (const Words& words : {Words{"train", "imagenet", "--arch", "resnet34", "--out", dir / "other"} + small,
                             Words{"eval", "imagenet", "--arch", "resnet34", "--size", "64"}}) {
    const Result result = lockstep(words + Words{"--load", weights});
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_NE(result.err.find("last.pt: a checkpoint of another model: "), std::string::npos) << result.err;
    EXPECT_NE(result.err.find("; its weights are those of imagenet --arch resnet18: give that recipe and options"),
              std::string::npos)
        << result.err;
  }
}

TEST(Networks, AnUnknownOneIsRefusedWithTheNearest) {
  const Result result = lockstep({"train", "imagenet", "--arch", "resnt18"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("did you mean resnet18?"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace lockstep::e2e
