#include "lockstep/data/read_sample.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "lockstep/base/error.h"
#include "lockstep/data/sample_rows.h"

namespace lockstep::data {
namespace {

using Rows = std::span<const at::Tensor>;

// A data set of these fields whose samples are what `write` makes of the rows.
struct Written final : Dataset {
  explicit Written(std::function<void(Rows)> the_write, std::vector<std::string> the_names = {"data", "target"})
      : write(std::move(the_write)), names(std::move(the_names)) {}
  int64_t size() const override { return 10; }
  std::vector<Field> fields() const override {
    std::vector<Field> fields;
    for (const std::string& name : names) fields.push_back({.name = name, .dtype = at::kFloat, .shape = {4}});
    return fields;
  }
  void read(int64_t, const Draw&, Rows rows, ReadStats& stats) const override {
    ++stats.bytes;
    write(rows);
  }
  std::string fingerprint() const override { return "written"; }
  std::string description() const override { return "written"; }

  std::function<void(Rows)> write;
  std::vector<std::string> names;
};

// The text of the library's error that act() throws.
template <typename Act>
std::string error_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class ReadSample : public ::testing::Test {
 protected:
  SampleRows rows_{Written({}).fields(), 1};
  ReadStats stats_;
  void read(const Written& data) { read_sample(data, {.index = 7, .draw = {}}, rows_.row(0), stats_); }
  void read_twice(const Written& data) { read_sample_twice(data, {.index = 7, .draw = {}}, rows_.row(0), stats_); }
};

TEST_F(ReadSample, NamesTheSampleOfAnotherLibrarysException) {
  const Written odd([](Rows) { throw std::runtime_error("odd\nsecond line"); });
  EXPECT_THROW(read(odd), DataError);
  EXPECT_EQ(error_of([&] { read(odd); }), "sample 7: odd");
  const Written large([](Rows) { throw std::bad_alloc(); });
  EXPECT_THROW(read(large), IoError);
  EXPECT_EQ(error_of([&] { read(large); }), "sample 7: no memory is left to read it");
  const Written ours([](Rows) { throw DataError("file.png: damaged"); });
  EXPECT_EQ(error_of([&] { read(ours); }), "file.png: damaged");
}

TEST_F(ReadSample, IsOutsideOfTheCallersModes) {
  const at::Tensor weight = at::ones({4}).set_requires_grad(true);
  const Written computed([&](Rows rows) {
    rows[0].copy_(2 * weight);
    rows[1].fill_(1);
  });
  read(computed);
  EXPECT_FALSE(rows_.row(0)[0].requires_grad()) << "a graph of all reads would grow";
  const c10::InferenceMode inference;
  rows_ = SampleRows(computed.fields(), 1);
  EXPECT_FALSE(rows_.batch().data().is_inference());
  const c10::InferenceMode none(false);
  read(computed);  // "Inplace update to inference tensor"
}

TEST_F(ReadSample, TwiceFindsTheFieldThatIsNotWrittenWhole) {
  read_twice(Written([](Rows rows) {
    rows[0].fill_(1);
    rows[1].fill_(2);
  }));
  EXPECT_EQ(stats_.bytes, 1) << "it counts once";
  EXPECT_TRUE(at::equal(rows_.batch().target(), at::full({1, 4}, 2)));
  const Written partly([](Rows rows) {
    rows[0].fill_(1);
    rows[1].slice(0, 0, 3).fill_(2);
  });
  EXPECT_THROW(read_twice(partly), ConfigError);
  EXPECT_EQ(
      error_of([&] { read_twice(partly); }),
      "written: sample 7 reads differently the second time: does read() write all of target, and by the index and "
      "the draw alone?");
}

TEST(CheckFields, WantsNamesOfTheirOwnAndDataFirst) {
  const auto check = [](std::vector<std::string> names) {
    return error_of([&] { check_fields(Written({}, std::move(names))); });
  };
  EXPECT_EQ(check({"data", "target"}), "");
  EXPECT_EQ(check({}), "written: the first of a data set's fields is named data, and this one has none");
  EXPECT_EQ(check({"target", "data"}), "written: the first of a data set's fields is named data, not 'target'");
  EXPECT_EQ(check({"data", "a", "a"}), "written: two fields are named a; each has a name of its own");
}

}  // namespace
}  // namespace lockstep::data
