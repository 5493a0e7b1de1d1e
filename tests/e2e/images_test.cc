// `lockstep train imagenet --data`: folders of one's own pictures, a class each.
#include <gtest/gtest.h>

#include <filesystem>
#include <tuple>

#include "lockstep/base/testing/long_test.h"
#include "pictures.h"
#include "runs.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;

// Three classes of 16 pictures, made at the first call.
const std::string& folders() {
  static const TempDir dir;
  static const bool written = (write_class_folders(dir / "pictures", 3, 16), true);
  static const std::string path = written ? dir / "pictures" : "";
  return path;
}

Words train_images(const std::string& run, const Words& more, const std::string& data = folders()) {
  return Words{"train", "imagenet",  "--data", data,   "--size", "64",    "--lanes", "4",          "--batch-size",
               "2",     "--threads", "1",      "--lr", "0.02",   "--out", run,       "--drop-last"} +
         more;
}

nlohmann::json outcome_after(const Words& words, const std::string& run) {
  const auto result = lockstep(words, ".", std::chrono::seconds(200));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return outcome_of(run);
}

class Images : public ::testing::TestWithParam<const char*> {};

// Random crops and flips, decoded by other threads of other ranks, as numbers or as bytes that are normalised later;
// then a resume in the middle of an epoch.
TEST_P(Images, GiveTheSameBitsAtAnyNumberOfRanksAndThreadsAndAfterAResume) {
  LOCKSTEP_LONG_TEST_IF(GetParam() == std::string("resnet18"));
  const TempDir dir;
  const Words network = {"--arch", GetParam(), "--augment", "standard"};
  const Words whole = network + Words{"--steps", "5", "--epochs", "2"};
  const auto one = outcome_after(train_images(dir / "1", whole + Words{"--nproc", "1", "--workers", "0"}), dir / "1");
  EXPECT_EQ(one.at("weights_sha256").get<std::string>().size(), 64u);
  for (const auto& [nproc, workers, normalize] : {std::tuple("2", "2", "auto"), std::tuple("4", "1", "device")}) {
    const std::string run = dir / nproc;
    const Words more = {"--nproc", nproc, "--workers", workers, "--normalize", normalize};
    EXPECT_EQ(outcome_after(train_images(run, whole + more), run), one) << nproc;
  }
  const std::string run = dir / "resumed";
  outcome_after(train_images(run, network + Words{"--steps", "2", "--epochs", "2", "--nproc", "2"}), run);
  const Words resume = {"train", "--resume", run, "--steps", "5", "--nproc", "1", "--normalize", "device"};
  EXPECT_EQ(outcome_after(resume, run), one) << "resumed";
}
INSTANTIATE_TEST_SUITE_P(All, Images, ::testing::Values("resnet18", "mobilenet_v2"));

// With the CPU as the device: the plan of each picture goes along with its file, and the weights are the same.
TEST(TrainedImages, AreDecodedByTheDevice) {
  const TempDir dir;
  const Words whole = {"--arch", "mobilenet_v2", "--steps", "4", "--epochs", "2"};
  const auto host = outcome_after(train_images(dir / "host", whole), dir / "host");
  const Words words =
      train_images(dir / "device", whole + Words{"--decode", "device", "--nproc", "2", "--workers", "2"});
  const auto result = lockstep(words, ".", std::chrono::seconds(200));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(outcome_of(dir / "device"), host);
  EXPECT_NE(result.out.find("JPEGs, decoded by libjpeg and normalised as they are used"), std::string::npos);
  EXPECT_NE(result.out.find("on the device, 0 on the host"), std::string::npos) << result.out;
  const auto decoded = final_of(dir / "device").at("decoded");
  EXPECT_GT(decoded.at("on_device").get<int>(), 0);
  EXPECT_TRUE(decoded.at("on_host").empty());
  const auto strong =
      lockstep(train_images(dir / "strong", whole + Words{"--decode", "device", "--augment", "strong"}));
  EXPECT_EQ(strong.exit_code, 2);
  EXPECT_NE(strong.err.find("RandAugment"), std::string::npos) << strong.err;
}

// A class has a colour of its own.
TEST(TrainedImages, AreLearntAndEvaluated) {
  LOCKSTEP_LONG_TEST_IF(true);
  const TempDir dir;
  const auto words = train_images(dir / "run", {"--arch", "mobilenet_v2", "--epochs", "30", "--nproc", "2", "--augment",
                                                "flip", "--validation", "25"});
  const auto found = outcome_after(words, dir / "run");
  EXPECT_GT(found.at("metrics").at("top1").get<double>(), 0.5);
  const auto result = lockstep({"eval", dir / "run", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out).at("top1"), found.at("metrics").at("top1"));
}

TEST(TrainedImages, AFileThatIsAddedBeforeAResumeIsNamed) {
  const TempDir dir;
  fs::copy(folders(), dir / "pictures", fs::copy_options::recursive);
  const auto words = train_images(dir / "run", {"--steps", "1", "--arch", "mobilenet_v2"}, dir / "pictures");
  ASSERT_EQ(lockstep(words).exit_code, 0);
  fs::copy(dir / "pictures/class_00/0.jpg", dir / "pictures/class_00/new.jpg");
  const auto result = lockstep({"train", "--resume", dir / "run", "--steps", "2"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("class_00/new.jpg was added"), std::string::npos) << result.err;
  fs::rename(dir / "pictures/class_00/new.jpg", dir / "pictures/class_00/0\nnew.jpg");
  const auto odd = lockstep({"train", "--resume", dir / "run", "--steps", "2"});
  EXPECT_NE(odd.err.find("class_00/0\\nnew.jpg was added"), std::string::npos) << odd.err;
}

// The newcomer's folder: a photograph for each class.
TEST(TrainedImages, OfOneAClassTrainAndAreNotHeldOut) {
  const TempDir dir;
  write_class_folders(dir / "pictures", 12, 1);
  const Words more = {"--steps", "1", "--arch", "mobilenet_v2"};
  const auto result = lockstep(train_images(dir / "run", more, dir / "pictures"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE((result.out + result.err).find("the training samples themselves"), std::string::npos)
      << result.out << result.err;
  const auto refused = lockstep(train_images(dir / "other", more + Words{"--validation", "25"}, dir / "pictures"));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("classes would have no"), std::string::npos) << refused.err;
}

TEST(TrainedImages, PicturesThatAreNoneAreNamed) {
  const TempDir dir;
  write_class_folders(dir / "pictures", 2, 4);
  write_file(dir / "pictures/class_01/2.jpg", "<!DOCTYPE html><html>no such picture</html>");
  const auto result = lockstep(train_images(dir / "run", {"--arch", "mobilenet_v2", "--nproc", "2"}, dir / "pictures"));
  EXPECT_EQ(result.exit_code, 65);
  EXPECT_NE(result.err.find("class_01/2.jpg"), std::string::npos) << result.err;
  fs::rename(dir / "pictures/class_01/2.jpg", dir / "pictures/class_01/two\nlines.jpg");
  const auto named = lockstep(train_images(dir / "named", {"--arch", "mobilenet_v2"}, dir / "pictures"));
  EXPECT_EQ(named.exit_code, 65);
  EXPECT_NE(named.err.find("class_01/two\\nlines.jpg: "), std::string::npos) << named.err;
  fs::create_directory(dir / "none");
  const auto none = lockstep(train_images(dir / "none_run", {}, dir / "none"));
  EXPECT_EQ(none.exit_code, 65);
  EXPECT_NE(none.err.find("looked for"), std::string::npos) << none.err;
}

TEST(Photographs, TrainAtOnce) {
  const std::string data = LOCKSTEP_SOURCE_DIR "/../shared/data/photos";
  if (!fs::exists(data)) GTEST_SKIP() << data << " is not there";
  const TempDir dir;
  const auto result = lockstep({"train", "imagenet", "--data", data, "--arch", "mobilenet_v2", "--size", "64",
                                "--steps", "3", "--nproc", "2", "--out", dir / "run"},
                               ".", std::chrono::seconds(200));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(steps_logged(dir / "run"), first_steps(3));
}

}  // namespace
}  // namespace lockstep::e2e
