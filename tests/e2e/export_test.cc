// `lockstep export`: a run's network, or that of weights alone, as a file for other programs. What these compute of it
// is compared in tests/interop/export_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "pictures.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Export, WritesARunsNetworkInBothFormats) {
  const TempDir dir;
  const std::string run = finished_run();
  const auto onnx = lockstep({"export", run, dir / "net.onnx"});
  ASSERT_EQ(onnx.exit_code, 0) << onnx.err;
  EXPECT_THAT(onnx.out, AllOf(HasSubstr("net.onnx: ONNX of "), EndsWith("input [batch, 1, 28, 28]\n")));
  EXPECT_THAT(read_file(dir / "net.onnx"),
              AllOf(HasSubstr("lockstep"), HasSubstr("conv1.weight"), HasSubstr("batch"), HasSubstr("Resize to 28")));
  const auto script = lockstep({"export", "mnist", "--load", run, dir / "net.pt", "--batch", "4"});
  ASSERT_EQ(script.exit_code, 0) << script.err;
  EXPECT_THAT(script.out, EndsWith("input [4, 1, 28, 28]\n"));
  EXPECT_EQ(read_file(dir / "net.pt").substr(0, 2), "PK");
  EXPECT_EQ(lockstep({"export", run, dir / "net.bin", "--format", "onnx"}).exit_code, 0);
  EXPECT_THAT(read_file(dir / "net.bin"), HasSubstr("conv1.weight"));
}

TEST(Export, KnowsARunsClassesSizeAndNormalisation) {
  const TempDir dir;
  write_class_folders(dir / "photos/train", 3, 4);
  write_class_folders(dir / "photos/val", 3, 2, /*seed=*/2);
  const std::string run = dir / "run", file = dir / "net.onnx";
  ASSERT_EQ(lockstep({"train", "imagenet", "--data", dir / "photos", "--arch", "shufflenet_v2", "--size", "64",
                      "--steps", "1", "--nproc", "1", "--out", run})
                .exit_code,
            0);
  const auto plain = lockstep({"export", run, file});
  ASSERT_EQ(plain.exit_code, 0) << plain.err;
  EXPECT_THAT(plain.out, EndsWith("input [batch, 3, 64, 64]\n"));
  EXPECT_THAT(read_file(file), AllOf(HasSubstr(R"(["class_00","class_01","class_02"])"),
                                     HasSubstr("mean 0.485 0.456 0.406"), HasSubstr("BatchNormalization")));
  const auto folded = lockstep({"export", run, file, "--fold-batch-norm", "--dynamic-size", "--size", "96"});
  ASSERT_EQ(folded.exit_code, 0) << folded.err;
  EXPECT_THAT(folded.out, EndsWith("input [batch, 3, height, width]\n"));
  EXPECT_THAT(read_file(file), Not(HasSubstr("BatchNormalization")));
}

TEST(Export, BadInputIsOneLine) {
  const TempDir dir;
  const std::string run = finished_run(), file = dir / "net.onnx";
  const auto refused = [&](const Words& words, int code) {
    const auto result = lockstep(Words{"export"} + words);
    EXPECT_EQ(result.exit_code, code) << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(fs::is_empty(dir.path())) << "something is left behind";
    return result.err;
  };
  EXPECT_THAT(refused({}, 2), HasSubstr("expected two words"));
  EXPECT_THAT(refused({run}, 2), HasSubstr("expected two words"));
  EXPECT_THAT(refused({run, dir / "net.bin"}, 2), HasSubstr("expected a name that ends in .onnx"));
  EXPECT_THAT(refused({dir / "none", file}, 2), HasSubstr("no such file or folder"));
  EXPECT_THAT(refused({run, file, "--batch", "0"}, 2), HasSubstr("--batch 0: expected"));
  EXPECT_THAT(refused({run, file, "--dynamic-size"}, 2), HasSubstr("the network takes images of one size alone"));
  EXPECT_THAT(refused({"unet", "--load", run, file}, 2), HasSubstr("so its weights are not those of unet"));
  EXPECT_THAT(refused({run, dir / "none/net.onnx"}, 74), HasSubstr("none/net.onnx"));
  const std::string own = run + "/checkpoints/last.pt";
  EXPECT_THAT(refused({own, own}, 2), HasSubstr("the checkpoint itself"));
  EXPECT_THAT(refused({run, run + "/checkpoints/new.pt"}, 2), HasSubstr("a run keeps its checkpoints there"));
}

}  // namespace
}  // namespace lockstep::e2e
