#include "lockstep/checkpoint/formats/legacy_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/formats/testing/files.h"
#include "lockstep/checkpoint/formats/testing/legacy_file.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::string_literals;
using namespace testing_support;
using namespace testing_support::legacy;
using testing::HasSubstr;

class LegacyReaderTest : public testing::Test {
 protected:
  Value read(const std::string& content) {
    write_file(path_, content);
    return read_pt(path_);
  }
  std::string refusal(const std::string& content) {
    return error_of<DataError>([&] { read(content); });
  }
  TempDir dir_;
  std::string path_ = dir_ / "old.pt";
};

TEST_F(LegacyReaderTest, ReadsFivePicklesAndTheStorages) {
  const Value value = read(kMagic + kVersion + kSystem + kTensor + kKeys + kTwo + kContent);
  ASSERT_NE(value.get_if<at::Tensor>(), nullptr);
  EXPECT_EQ((*value.get_if<at::Tensor>())[1].item<float>(), 2);
}

TEST_F(LegacyReaderTest, IsKnownByItsMagic) {
  EXPECT_TRUE(is_legacy_pt(kMagic));
  EXPECT_TRUE(is_legacy_pt("\x80\x04\x95\x0d\x00\x00\x00\x00\x00\x00\x00"s + kMagic.substr(2)));
  EXPECT_FALSE(is_legacy_pt(kMagic.substr(0, 14)));
  EXPECT_FALSE(is_legacy_pt(""));
  EXPECT_FALSE(is_legacy_pt("\x80"));
}

TEST_F(LegacyReaderTest, RefusesOtherVersionsAndByteOrders) {
  EXPECT_THAT(refusal(kMagic + "\x80\x02M\xea\x03."s), HasSubstr("unknown version"));
  EXPECT_THAT(refusal(kMagic + kVersion + "\x80\x02}X\x0d\x00\x00\x00little_endian\x89s."s), HasSubstr("big-endian"));
  EXPECT_THAT(refusal(kMagic + kVersion + "\x80\x02}."s), HasSubstr("has no \"little_endian\""));
}

TEST_F(LegacyReaderTest, RefusesStoragesThatDoNotFit) {
  const std::string start = kMagic + kVersion + kSystem + kTensor;
  EXPECT_THAT(refusal(start + kKeys + kTwo + kContent.substr(1)), HasSubstr("cut short"));
  EXPECT_THAT(refusal(start + "\x80\x02]."s + kTwo + kContent), HasSubstr("storage k is missing"));
  EXPECT_THAT(refusal(start + "\x80\x02](X\x01\x00\x00\x00ze."s + kTwo + kContent), HasSubstr("does not fit"));
  EXPECT_THAT(refusal(start + "\x80\x02N."s + kTwo + kContent), HasSubstr("its list of storages is None"));
  for (const auto& count :
       {"\x00\x00\x00\x00\x00\x00\x00\x00"s, "\x03\x00\x00\x00\x00\x00\x00\x00"s, std::string(8, '\xff')}) {
    EXPECT_THAT(refusal(start + kKeys + count + kContent), HasSubstr("elements, its tensors need 8 bytes"));
  }
}

TEST_F(LegacyReaderTest, RefusesTensorsLargerThanTheFile) {
  std::string tensor = kTensor;
  tensor.replace(tensor.find("K\x02N"), 2, "J\xff\xff\xff\x7f");
  EXPECT_THAT(refusal(kMagic + kVersion + kSystem + tensor + kKeys), HasSubstr("more than the file holds"));
}

TEST_F(LegacyReaderTest, NamesThePickleAtFault) {
  EXPECT_THAT(refusal(kMagic + kVersion + kSystem + "cos\nsystem\n."),
              HasSubstr("object (from byte 45): byte 0: global os.system is not one"));
}

}  // namespace
}  // namespace lockstep::checkpoint
