#include "lockstep/datasets/packing/places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/datasets/packing/testing/pack_data.h"

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::TempDir;
using testing_support::refusal;

TEST(Places, MayBeBesideEachOther) {
  const TempDir dir;
  for (const char* data : {"data", "out2", "ou", "out.packing2"}) {
    check_places(dir / "out", {dir / data}, {dir / "out", dir / "out.packing"});
  }
}

TEST(Places, OfDataAndOfWhatIsRemovedDoNotOverlap) {
  const TempDir dir;
  fs::create_directories(dir / "real/train");
  fs::create_directory_symlink(dir / "real", dir / "link");
  const auto refused = [&](const std::string& out, const std::string& data) {
    const std::string whole = whole_path(dir / out);
    return refusal([&] { check_places(whole, {dir / "elsewhere", dir / data}, {whole, whole + ".packing"}); });
  };
  for (const char* out : {"data", "data/", "data/new", "data/../data/a/b", "link/train/x/../new"}) {
    EXPECT_THAT(refused(out, out[0] == 'd' ? "data" : "real/train"), HasSubstr("lies in the data itself")) << out;
  }
  for (const char* data : {"real/train", "link/train", "real/train/more", "real/train/../train"}) {
    EXPECT_THAT(refused("real", data), HasSubstr("real, of which all files would be removed")) << data;
    EXPECT_THAT(refused("link", data), HasSubstr("of which all files would be removed")) << data;
  }
  for (const char* data : {"real.packing", "real.packing/train"}) {
    EXPECT_THAT(refused("real", data), HasSubstr("real.packing, of which all files")) << data;
  }
}

// A link stands for whatever gives a folder two names: a mount, or a file system that ignores capitals.
TEST(Places, AreTheSameByWhateverName) {
  const TempDir dir;
  fs::create_directory(dir / "real");
  fs::create_directory_symlink("real", dir / "link");
  EXPECT_THAT(refusal([&] { check_places(dir / "link", {dir / "real"}, {}); }), HasSubstr("lies in the data itself"))
      << "though the path is not whole";
}

}  // namespace
}  // namespace lockstep::datasets
