#include "lockstep/train/folder/text_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::train {
namespace {

TEST(TextFile, IsReplaced) {
  const ::lockstep::testing_support::TempDir dir;
  for (const char* text : {"{\"old\": 1}", "{}"}) {
    write_text(dir / "final.json", text);
    std::string line;
    std::getline(std::ifstream(dir / "final.json"), line);
    EXPECT_EQ(line, text);
  }
  EXPECT_THROW(write_text(dir / "none/final.json", ""), IoError);
}

}  // namespace
}  // namespace lockstep::train
