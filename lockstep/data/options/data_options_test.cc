#include "lockstep/data/options/data_options.h"

#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::data {
namespace {

TEST(DataOptions, AreReadAndRecorded) {
  DataOptions data;
  config::OptionSet rows;
  data.declare(rows);
  rows.apply(std::vector<config::GivenOption>{{"data", "digits"},
                                              {"validation", "12.5"},
                                              {"hold-out", "7.png"},
                                              {"workers", "3"},
                                              {"skip-bad", "5"},
                                              {"drop-last", "true"}});
  EXPECT_EQ(data.path, "digits");
  EXPECT_EQ(data.validation, 12.5);
  EXPECT_EQ(data.workers, 3);
  EXPECT_EQ(data.skip_bad, 5);
  const config::Record record = rows.record();
  EXPECT_TRUE(data.drop_last);
  ASSERT_EQ(record.size(), 3u);  // the others bear on no bit
  EXPECT_EQ(record[0].name, "validation");
  EXPECT_EQ(record[1].name, "hold-out");
  EXPECT_EQ(record[2].name, "drop-last");
}

TEST(DataOptions, HoldOutNoMoreThanNineTenths) {
  DataOptions data;
  config::OptionSet rows;
  data.declare(rows);
  EXPECT_NE(testing_support::refusal([&] { rows.apply(std::vector<config::GivenOption>{{"validation", "91"}}); }), "");
}

TEST(DataOptions, HoldOutFilesOrAShare) {
  DataOptions data{.hold_out = "7.png"};
  data.check();
  data.validation = 0;
  data.check();
  data.validation = 10;
  EXPECT_EQ(
      testing_support::refusal<ConfigError>([&] { data.check(); }),
      "--hold-out 7.png: holds these out in place of a share, and --validation 10 asks for one; leave one of them "
      "out");
}

}  // namespace
}  // namespace lockstep::data
