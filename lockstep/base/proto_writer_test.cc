#include "lockstep/base/proto_writer.h"

#include <gtest/gtest.h>

#include <array>

namespace lockstep {
namespace {

using std::string_literals::operator""s;

TEST(ProtoWriter, WritesEachKindOfField) {
  EXPECT_EQ(ProtoWriter().whole(1, 150).bytes(), "\x08\x96\x01");  // the example of protobuf's documentation
  EXPECT_EQ(ProtoWriter().text(2, "testing").bytes(), "\x12\x07testing");
  EXPECT_EQ(ProtoWriter().real(1, 1).bytes(), "\x09\0\0\0\0\0\0\xf0\x3f"s);
  EXPECT_EQ(ProtoWriter().real32(2, 1).bytes(), "\x15\0\0\x80\x3f"s);
  EXPECT_EQ(ProtoWriter().message(3, ProtoWriter().whole(1, 150)).bytes(), "\x1a\x03\x08\x96\x01");
  EXPECT_EQ(ProtoWriter().reals(6, std::array{1.0}).bytes(), "\x32\x08\0\0\0\0\0\0\xf0\x3f"s);
}

TEST(ProtoWriter, ANegativeNumberHasTenBytes) {
  EXPECT_EQ(ProtoWriter().whole(1, -1).bytes(), "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST(ProtoWriter, BeginsAFieldWhoseBytesFollow) {
  EXPECT_EQ(ProtoWriter().whole(1, 1).begin(9, 300).bytes(), "\x08\x01\x4a\xac\x02"s);
}

TEST(ProtoWriter, AFieldAbove15HasATagOfTwoBytes) { EXPECT_EQ(ProtoWriter().whole(16, 0).bytes(), "\x80\x01\0"s); }

}  // namespace
}  // namespace lockstep
