#include "lockstep/checkpoint/formats/pickle_numpy.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/contents/describe.h"
#include "lockstep/checkpoint/formats/pickle_reader.h"
#include "lockstep/checkpoint/formats/testing/files.h"
#include "lockstep/checkpoint/formats/value_view.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;
using testing_support::error_of;

Value read(const std::string& pickle, bool ignore_unknown = false) {
  return read_pickle(pickle, {.name = "p", .max_tensor_bytes = 1 << 20, .ignore_unknown = ignore_unknown}).value;
}
std::string refusal(const std::string& pickle) {
  return error_of<DataError>([&] { read(pickle); });
}

// numpy's own pickles (testdata/record_numpy.py), which hold an array of objects as well.
TEST(PickleNumpy, ReadsWhatNumpyWritesAtEveryProtocol) {
  for (int protocol = 2; protocol <= 5; ++protocol) {
    SCOPED_TRACE(protocol);
    const std::string pickle =
        testing_support::read_file(cat(testing_support::testdata(), "/numpy_protocol", protocol, ".pkl"));
    const Value value = read(pickle, /*ignore_unknown=*/true);
    const ValueView view(value, "numpy");
    EXPECT_TRUE(at::equal(view["matrix"].tensor(), at::arange(6, at::kFloat).view({2, 3})));
    EXPECT_TRUE(at::equal(view["fortran"].tensor(), at::arange(6, at::kShort).view({2, 3})));
    EXPECT_EQ(view["fortran"].tensor().strides(), at::IntArrayRef({1, 2}));
    EXPECT_EQ(view["empty"].tensor().sizes(), at::IntArrayRef({0, 3}));
    EXPECT_EQ(view["zero_dim"].tensor().sizes(), at::IntArrayRef({}));
    EXPECT_EQ(view["zero_dim"].tensor().item<uint8_t>(), 200);
    EXPECT_EQ(describe(view["scalars"].value()).dump(),
              R"({"0":{"value":0.5},"1":{"value":-2.0},"2":{"value":1.5},"3":{"value":-3},"4":{"value":65535},)"
              R"("5":{"value":true}})");
    EXPECT_EQ(view["dtype"].text(), "numpy.float32");
    EXPECT_EQ(describe(view["more"].value()).dump(),
              R"({"0":{"opaque":"numpy.ndarray"},"1":{"opaque":"numpy.ndarray"},"2":{"opaque":"numpy.generic"}})");
    EXPECT_THAT(refusal(pickle), HasSubstr("numpy's dtype O8, which is of no number"));
  }
}

std::string text(const std::string& content) { return "X"s + static_cast<char>(content.size()) + "\0\0\0"s + content; }
std::string dtype(const std::string& name, const std::string& order = "<") {
  return "cnumpy\ndtype\n" + text(name) + "\x89\x88\x87R(K\x03" + text(order) +
         "NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"s;
}
std::string array(const std::string& shape, const std::string& dtype, const std::string& content,
                  const std::string& made = "cnumpy\nndarray\nK\0\x85"s + "C\x01"s + "b\x87") {
  return "cnumpy.core.multiarray\n_reconstruct\n" + made + "R(K\x01" + shape + dtype + "\x89" + content + "tb";
}
std::string bytes(const std::string& content) { return "C"s + static_cast<char>(content.size()) + content; }
std::string whole(const std::string& operations) { return "\x80\x03" + operations + "."; }

const std::string kTwo = "K\x02\x85";

TEST(PickleNumpy, TheseTestsBuildAnArray) {
  EXPECT_EQ(refusal(whole(array(kTwo, dtype("i1", "|"), bytes("ab")))), "no error");
}

TEST(PickleNumpy, ArraysHaveTheBytesOfTheirShape) {
  EXPECT_THAT(refusal(whole(array(kTwo, dtype("f4"), bytes("ab")))), HasSubstr("of 8 bytes with 2 bytes of content"));
  EXPECT_THAT(refusal(whole(array("J\xff\xff\xff\xff\x85", dtype("f4"), bytes("ab")))),
              HasSubstr("of the negative size -1"));
  const std::string large = "\x8a\x08\0\0\0\0\0\0\0\x10"s;
  EXPECT_THAT(refusal(whole(array(large + large + "\x86", dtype("f4"), bytes("ab")))), HasSubstr("no memory holds"));
  EXPECT_THAT(refusal(whole(array("K\0"s + large + "\x86", dtype("f4"), bytes("")))), HasSubstr("no error"));
  EXPECT_THAT(refusal(whole(array(large + large + "K\0\x87"s, dtype("f4"), bytes("")))), HasSubstr("no memory holds"));
  EXPECT_THAT(refusal(whole(array("(" + std::string(200, 'N') + "t", dtype("f4"), bytes("ab")))),
              HasSubstr("more than 64 dimensions"));
}

TEST(PickleNumpy, ArraysAreOfNumbersInThisMachinesOrder) {
  EXPECT_THAT(refusal(whole(array(kTwo, dtype("O8", "|"), "]"))), HasSubstr("numpy's dtype O8, which is of no number"));
  EXPECT_THAT(refusal(whole(array(kTwo, dtype("U5"), bytes("")))), HasSubstr("numpy's dtype U5"));
  EXPECT_THAT(refusal(whole(array(kTwo, dtype("M8"), bytes("")))), HasSubstr("numpy's dtype M8"));
  EXPECT_THAT(refusal(whole(array(kTwo, dtype("f4", ">"), bytes("12345678")))), HasSubstr("in big-endian order (f4)"));
  EXPECT_THAT(refusal(whole(array(kTwo, dtype("f4", "?"), bytes("12345678")))), HasSubstr("in the byte order ?"));
  EXPECT_THAT(refusal(whole(array(kTwo, "cnumpy\ndtype\n" + text(">f4") + "\x89\x88\x87R", bytes("12345678")))),
              HasSubstr("in big-endian order"));
}

TEST(PickleNumpy, ArraysAreMadeOfBytesAndOfArraysAlone) {
  EXPECT_THAT(refusal(whole(array(kTwo, dtype("i1", "|"), text("ab")))), HasSubstr("something else than bytes"));
  EXPECT_THAT(refusal(whole(array(kTwo, dtype("i1", "|"), "]"))), HasSubstr("something else than bytes"));
  EXPECT_THAT(
      refusal(whole(array(kTwo, dtype("i1", "|"), bytes("ab"), "cbuiltins\nset\nK\0\x85"s + "C\x01"s + "b\x87"))),
      HasSubstr("of a class that is no array"));
  EXPECT_THAT(refusal(whole(array(kTwo, dtype("i1", "|"), bytes("ab"), "cos\nsystem\nK\0\x85"s + "C\x01"s + "b\x87"))),
              HasSubstr("global os.system"));
  EXPECT_THAT(refusal(whole("cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n\x85R")),
              HasSubstr("a numpy array without its content"));
  const std::string filled = array(kTwo, dtype("i1", "|"), bytes("ab"));
  EXPECT_THAT(refusal(whole(filled + "(K\x01" + kTwo + dtype("i1", "|") + "\x89" + bytes("ab") + "tb")),
              HasSubstr("filled twice"));
}

// The memo gives the same bytes to many arrays.
TEST(PickleNumpy, ArraysMayNotExceedTheFile) {
  std::string pickle = "B"s + "\x00\x00\x01\x00"s + std::string(1 << 16, 'x') + "q\x00"s + dtype("i1", "|") + "q\x01(";
  for (int i = 0; i < 4; ++i) pickle += array("J"s + "\x00\x00\x01\x00"s + "\x85", "h\x01", "h\x00"s);
  EXPECT_THAT(refusal(whole(pickle + "l")), HasSubstr("larger than the file"));
}

std::string scalar(const std::string& dtype, const std::string& content) {
  return whole("cnumpy.core.multiarray\nscalar\n" + dtype + content + "\x86R");
}

TEST(PickleNumpy, ScalarsAreNumbers) {
  EXPECT_EQ(*read(scalar(dtype("u8"), bytes("\x01\0\0\0\0\0\0\0"s))).get_if<int64_t>(), 1);
  EXPECT_EQ(*read(scalar(dtype("i2"), bytes("\xfe\xff"))).get_if<int64_t>(), -2);
  EXPECT_THAT(refusal(scalar(dtype("u8"), bytes("\0\0\0\0\0\0\0\x80"s))), HasSubstr("more than 63 bits"));
  EXPECT_THAT(refusal(scalar(dtype("f4"), bytes("123"))), HasSubstr("a numpy scalar of 3 bytes"));
  EXPECT_THAT(refusal(scalar(dtype("f4"), bytes("123456789"))), HasSubstr("more than 8 bytes"));
  EXPECT_THAT(refusal(scalar(dtype("c8"), bytes("12345678"))), HasSubstr("a complex number"));
  EXPECT_THAT(refusal(scalar(dtype("O8", "|"), "N")), HasSubstr("numpy's dtype O8"));
}

TEST(NumpyDtype, NamesGoBothWays) {
  for (const auto dtype : {at::kBool, at::kByte, at::kChar, at::kShort, at::kInt, at::kLong, at::kUInt16, at::kUInt32,
                           at::kUInt64, at::kHalf, at::kFloat, at::kDouble, at::kComplexFloat, at::kComplexDouble}) {
    EXPECT_EQ(numpy_dtype(numpy_dtype_name(dtype)).dtype, dtype);
  }
  EXPECT_EQ(numpy_dtype_name(at::kBFloat16), "");
  EXPECT_FALSE(numpy_dtype("O8").dtype);
  EXPECT_FALSE(numpy_dtype("").dtype);
}

}  // namespace
}  // namespace lockstep::checkpoint
