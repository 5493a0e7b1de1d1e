#include "lockstep/predict/standard_input.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "lockstep/base/error.h"

namespace lockstep::predict {
namespace {

// Puts a file with this text at standard input, until it goes.
class Given {
 public:
  explicit Given(const std::string& text) : before_(dup(STDIN_FILENO)) {
    const std::string path = ::testing::TempDir() + "given-input";
    std::ofstream(path) << text;
    const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    dup2(file.get(), STDIN_FILENO);
  }
  ~Given() { dup2(before_.get(), STDIN_FILENO); }
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;

 private:
  Descriptor before_;
};

TEST(StandardInput, IsAFileForWhoReadsIt) {
  const std::string text(200'000, 'x');
  const Given given(text);
  const StandardInput input;
  for (int time = 0; time < 2; ++time) {
    std::ostringstream read;
    read << std::ifstream(input.path()).rdbuf();
    EXPECT_EQ(read.str(), text);
  }
  EXPECT_EQ(input.named(input.path() + ": no image"), "standard input: no image");
}

TEST(StandardInput, ThatIsEmptyIsRefused) {
  const Given given("");
  EXPECT_THROW(StandardInput(), DataError);
}

}  // namespace
}  // namespace lockstep::predict
