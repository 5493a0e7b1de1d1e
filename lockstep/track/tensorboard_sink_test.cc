#include "lockstep/track/tensorboard_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "lockstep/base/testing/temp_dir.h"
#include "lockstep/track/testing/read_events.h"

namespace lockstep::track {
namespace {

using testing::ElementsAre;
using testing::Pair;
using testing_support::Message;
using testing_support::read_events;
using testing_support::SummaryValue;

class Tensorboard : public testing::Test {
 protected:
  std::vector<Message> events() const {
    return read_events(std::filesystem::directory_iterator(dir_ / "tb")->path().string());
  }
  SummaryValue only() const { return testing_support::summary_values(events()).at(0); }

  lockstep::testing_support::TempDir dir_;
  TensorboardSink sink_{dir_ / "tb", 1};
};

TEST_F(Tensorboard, NumbersOfARecordAreScalars) {
  sink_.write({{"kind", "train"},
               {"step", 3},
               {"time", 12.5},
               {"loss", 0.5},
               {"data", {{"wait", 0.25}}},
               {"skipped", true},
               {"overflow", "a.weight"}});
  std::map<std::string, float> numbers;
  for (const SummaryValue& each : testing_support::summary_values(events())) {
    EXPECT_EQ(each.step, 3);
    numbers[each.tag] = each.value.real32(2);
  }
  EXPECT_THAT(numbers, ElementsAre(Pair("train/data/wait", 0.25), Pair("train/loss", 0.5), Pair("train/skipped", 1)));
  EXPECT_EQ(events()[2].real(1), 12.5);
}

TEST_F(Tensorboard, EvaluationsGoByTheirSplit) {
  sink_.write({{"kind", "eval"}, {"split", "validation"}, {"step", 3}, {"loss", std::nan("")}});
  EXPECT_EQ(only().tag, "validation/loss");
  EXPECT_TRUE(std::isnan(only().value.real32(2)));
}

TEST_F(Tensorboard, ATextIsATensorOfThatPlugIn) {
  sink_.text("config", 4, "lr = 1");
  EXPECT_EQ(only().step, 4);
  EXPECT_EQ(only().value.message(9).message(1).text(1), "text");
  EXPECT_EQ(only().value.message(8).whole(1), 7) << "DT_STRING";
  EXPECT_EQ(only().value.message(8).text(8), "lr = 1");
}

TEST_F(Tensorboard, AHistogramHasItsBuckets) {
  sink_.histogram("weights/a", 2,
                  {.min = -1, .max = 2, .sum = 1, .sum_of_squares = 5, .count = 3, .limits = {0, 3}, .counts = {1, 2}});
  const Message histogram = only().value.message(5);
  EXPECT_EQ(histogram.real(1), -1);
  EXPECT_EQ(histogram.real(2), 2);
  EXPECT_EQ(histogram.real(3), 3);
  EXPECT_EQ(histogram.real(4), 1);
  EXPECT_EQ(histogram.real(5), 5);
  EXPECT_THAT(histogram.reals(6), ElementsAre(0, 3));
  EXPECT_THAT(histogram.reals(7), ElementsAre(1, 2));
}

TEST_F(Tensorboard, APictureHasItsSize) {
  sink_.picture("masks/0", 2, {.width = 30, .height = 10, .png = "png"});
  const Message picture = only().value.message(4);
  EXPECT_EQ(picture.whole(1), 10);
  EXPECT_EQ(picture.whole(2), 30);
  EXPECT_EQ(picture.text(4), "png");
}

TEST_F(Tensorboard, HyperparametersKeepTheirTypes) {
  sink_.begin({{"lr", 0.5}, {"optimizer", "sgd"}, {"sync-bn", true}}, {"test/loss"});
  sink_.end();
  const auto values = testing_support::summary_values(events());
  ASSERT_EQ(values.size(), 3u);
  const auto content = [&](size_t i) { return Message(values[i].value.message(9).message(1).text(2)); };
  EXPECT_EQ(values[0].tag, "_hparams_/experiment");
  EXPECT_EQ(content(0).message(2).message(5).message(1).text(2), "test/loss");
  EXPECT_EQ(values[1].tag, "_hparams_/session_start_info");
  const auto parameters = content(1).message(3).texts.at(1);
  ASSERT_EQ(parameters.size(), 3u);
  EXPECT_EQ(Message(parameters[0]).message(2).real(2), 0.5);
  EXPECT_EQ(Message(parameters[1]).message(2).text(3), "sgd");
  EXPECT_EQ(Message(parameters[2]).message(2).whole(4), 1);
  EXPECT_EQ(values[2].tag, "_hparams_/session_end_info");
  EXPECT_EQ(content(2).message(4).whole(1), 1) << "success";
}

}  // namespace
}  // namespace lockstep::track
