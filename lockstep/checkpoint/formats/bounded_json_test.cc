#include "lockstep/checkpoint/formats/bounded_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/checkpoint/formats/byte_cursor.h"

namespace lockstep::checkpoint {
namespace {

using testing::HasSubstr;

// Writes down what it is told.
class Recorder : public JsonVisitor {
 public:
  std::string seen;
  void object(const Path& path) override { add(path, "{}"); }
  void array(const Path& path) override { add(path, "[]"); }
  void text(const Path& path, const std::string& value) override { add(path, "'" + value + "'"); }
  void number(const Path& path, uint64_t value) override { add(path, std::to_string(value)); }
  void other(const Path& path, std::string_view what) override { add(path, "(" + std::string(what) + ")"); }

 private:
  void add(const Path& path, const std::string& what) { seen += path_text(path) + what + " "; }
};

std::string read(const std::string& text) {
  Recorder recorder;
  read_json(text, 3, recorder);
  return recorder.seen;
}

std::string fault_of(const std::string& text) {
  try {
    read(text);
  } catch (const Fault& fault) {
    return fault.text;
  }
  return "none";
}

TEST(BoundedJson, TellsValuesByTheirPath) {
  EXPECT_EQ(read(R"({"a": {"b": [1, "x"]}, "c": 2} )"), "{} a{} a/b[] a/b1 a/b'x' c2 ");
  EXPECT_EQ(read("18446744073709551615"), "18446744073709551615 ");
  EXPECT_EQ(read("[null, true, -1, 1.5, 18446744073709551616]"), "[] (null) (true) (-1) (1.5) (18446744073709551616) ");
}

TEST(BoundedJson, RefusesNamesThatComeTwice) {
  EXPECT_EQ(fault_of(R"({"x": {"a": 1, "a": 2}})"), "x/a: comes twice");
  EXPECT_EQ(fault_of(R"({"a": {"a": 1}, "b": {"a": 2}})"), "none");
}

TEST(BoundedJson, BoundsNames) {
  EXPECT_THAT(fault_of("{\"" + std::string(kMaxJsonNameBytes + 1, 'x') + "\": 1}"), HasSubstr("a name of 65537 bytes"));
  std::string many;
  for (size_t i = 0; i <= kMaxJsonNames; ++i) many += (i == 0 ? "{\"" : ",\"") + std::to_string(i) + "\":0";
  EXPECT_EQ(fault_of(many + "}"), "more than 262144 names in an object");
}

TEST(BoundedJson, BoundsNesting) {
  EXPECT_EQ(fault_of(R"({"a": [[1]]})"), "none");
  EXPECT_THAT(fault_of(R"({"a": [[[1]]]})"), HasSubstr("nested more than 3 deep"));
  EXPECT_THAT(fault_of(std::string(1'000'000, '[')), HasSubstr("nested more than 3 deep"));
}

TEST(BoundedJson, RefusesWhatIsNoJson) {
  EXPECT_EQ(fault_of("{\"a\": }"), "no JSON at byte 7");
  EXPECT_THAT(fault_of("{} x"), HasSubstr("no JSON"));
  EXPECT_THAT(fault_of("{\"\xff\": 1}"), HasSubstr("no JSON"));
  EXPECT_THAT(fault_of(""), HasSubstr("no JSON"));
}

}  // namespace
}  // namespace lockstep::checkpoint
