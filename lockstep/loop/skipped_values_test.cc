#include "lockstep/loop/skipped_values.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/formats/pt_writer.h"

namespace lockstep::loop {
namespace {

// What comes back from a file.
std::vector<data::BadSample> written_and_read(const std::vector<data::BadSample>& samples) {
  const std::string path = ::testing::TempDir() + "skipped." + std::to_string(getpid()) + ".pt";
  checkpoint::write_pt(checkpoint::Dict{{"skipped", skipped_to_list(samples)}}, path);
  const checkpoint::Value value = checkpoint::read_pt(path);
  std::filesystem::remove(path);
  return skipped_from_list(checkpoint::ValueView(value, path)["skipped"]);
}

TEST(SkippedValues, ComeBack) {
  const std::vector<data::BadSample> samples = {{"cats/1.jpg", "cats/1.jpg: empty", 12}, {"gr\xc3\xbc\xc3\x9f", "why"}};
  EXPECT_EQ(written_and_read(samples), samples);
  EXPECT_TRUE(written_and_read({}).empty());
}

TEST(SkippedValues, OfNoUtf8CanBeReadAgain) {
  const auto read = written_and_read({{"caf\xe9", "caf\xe9: torn"}});
  ASSERT_EQ(read.size(), 1u);
  EXPECT_EQ(read[0].name, "caf\\xe9");
  EXPECT_EQ(read[0].why, "caf\\xe9: torn");
}

TEST(SkippedValues, OfAnotherFormAreRefused) {
  const checkpoint::Value value = checkpoint::List{checkpoint::List{"cats/1.jpg"}};
  EXPECT_THROW(skipped_from_list(checkpoint::ValueView(value, "a.pt")), DataError);
}

}  // namespace
}  // namespace lockstep::loop
