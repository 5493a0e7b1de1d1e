#include "lockstep/checkpoint/formats/safetensors_reader.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/testing/files.h"
#include "lockstep/checkpoint/formats/testing/safetensors_file.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::string_literals;
using namespace testing_support;
using testing::HasSubstr;

class SafetensorsReader : public testing::Test {
 protected:
  Dict read(const std::string& content) const {
    write_file(path_, content);
    return *read_checkpoint(path_).get_if<Dict>();
  }
  std::string refusal(const std::string& content) const {
    return error_of<DataError>([&] { read(content); });
  }
  TempDir dir_;
  std::string path_ = dir_ / "a.safetensors";
};

TEST_F(SafetensorsReader, ReadsTensorsAndTexts) {
  const std::string header = R"({"__metadata__":{"format":"pt"},)" + safetensors_entry("z", "U8", "[2,2]", 2, 6) + "," +
                             safetensors_entry("a", "I16", "[]", 0, 2) + "}";
  const Dict root = read(safetensors_file(header, "\x07\x01\1\2\3\4"s));
  EXPECT_EQ(key_text(root.begin()->key), "__metadata__");
  EXPECT_EQ(*root.find("__metadata__")->get_if<Dict>()->find("format")->get_if<std::string>(), "pt");
  const at::Tensor& z = *root.find("z")->get_if<at::Tensor>();
  EXPECT_TRUE(z.equal(at::tensor({1, 2, 3, 4}, at::kByte).view({2, 2})));
  EXPECT_EQ(root.find("a")->get_if<at::Tensor>()->item<int16_t>(), 0x107);
  EXPECT_EQ(read(safetensors_file("{}      ", "")).size(), 0u);
}

// The length's bytes may be another format's first ones: 123 is a brace, as an index begins.
TEST_F(SafetensorsReader, IsNotTakenForAnotherFormat) {
  std::string header = "{" + safetensors_entry("a", "U8", "[1]", 0, 1) + "}";
  header.resize('{', ' ');
  EXPECT_TRUE(read(safetensors_file(header, "x")).contains("a"));
}

TEST_F(SafetensorsReader, SaysWhatIsWrongWithTheLength) {
  const std::string sound = safetensors_file("{" + safetensors_entry("a", "U8", "[4]", 0, 4) + "}", "1234");
  EXPECT_THAT(refusal(sound.substr(0, sound.size() - 1)),
              HasSubstr("a.safetensors: a: ends at byte 4 of the data, and the file has 3; it is cut short"));
  EXPECT_THAT(refusal(sound.substr(0, 40)), HasSubstr("and the file has 32; it is cut short"));
  EXPECT_THAT(refusal("\0\0\0\0\1\0\0\0{}"s),
              HasSubstr("a header of 4294967296 bytes; a safetensors file's has at most"));
  EXPECT_THAT(refusal(sound.substr(0, 8)), HasSubstr("starts with"));
}

TEST_F(SafetensorsReader, EveryCutIsRefused) {
  const std::string sound = safetensors_file("{" + safetensors_entry("a", "F32", "[2]", 0, 8) + "}", "12345678");
  for (size_t length = 0; length < sound.size(); ++length) {
    EXPECT_NE(refusal(sound.substr(0, length)), "no error") << length;
  }
  EXPECT_NE(refusal(sound + "x"), "no error");
}

TEST_F(SafetensorsReader, RefusesEveryHostileFixtureInOneLine) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(fixtures() + "/hostile")) {
    if (entry.path().extension() != ".safetensors") continue;
    ++count;
    const std::string line = error_of<DataError>([&] { read_checkpoint(entry.path().string()); });
    EXPECT_THAT(line, testing::StartsWith(entry.path().string() + ": "));
    EXPECT_THAT(line, testing::Not(HasSubstr("\n")));
    EXPECT_LT(line.size(), 1000u);
  }
  EXPECT_GE(count, 2u);
}

}  // namespace
}  // namespace lockstep::checkpoint
