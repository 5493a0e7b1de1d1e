#include "lockstep/config/option_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/testing/refusal.h"

namespace lockstep::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::refusal;

enum class Colour { kBlue = 7, kRed = 3 };
constexpr auto words(Colour) { return std::to_array<Word<Colour>>({{Colour::kRed, "red"}, {Colour::kBlue, "blue"}}); }

struct Paint {
  std::string name, file;
  std::optional<int> layers;
  double gloss = 0.5;
  Colour colour = Colour::kRed;
  std::optional<std::string> brush;
  bool wet = true;
  bool quick = false;

  void declare(OptionSet& options) {
    using enum Effect;
    options.section("Paint");
    options.subject("name", &name, kIdentity);
    options.text("file", "FILE", "a picture", &file, kNone).not_in_file();
    options.number("layers", "N", "how many", &layers, 1, 9, kTrajectory);
    options.number("gloss", "X", "how shiny", &gloss, 0, 1, kIdentity);
    options.word("colour", "which", &colour, kNone).bare("blue");
    options.choice("brush", "with what", &brush, {"broad", "fine"}, kNone);
    options.toggle("wet", "still", &wet, kNone);
    options.flag("quick", "at once", &quick, kNone).of_one_start();
  }
};

struct Set {
  Paint paint;
  OptionSet rows;
  Set() { paint.declare(rows); }
};

TEST(OptionSet, WhatIsRecalledIsNotPassedOn) {
  Set set;
  set.rows.apply_as_recalled(std::vector<GivenOption>{{"layers", "3"}, {"gloss", "0.25"}, {"wet", "off"}});
  set.rows.apply_as_given(std::vector<GivenOption>{{"gloss", "0.25"}, {"wet", "on"}});
  EXPECT_EQ(set.paint.layers, 3);
  EXPECT_THAT(set.rows.arguments(), ElementsAre("--gloss=0.25", "--wet=on"));
  set.rows.reset();
  set.rows.apply(std::vector<GivenOption>{{"layers", "3"}});
  EXPECT_THAT(set.rows.arguments(), ElementsAre("--layers=3"));
}

TEST(OptionSet, AValueThatSaysNoneIsRecordedAsLeftOut) {
  std::optional<double> share;
  OptionSet rows;
  rows.number("share", "X", "how much", &share, 0, 1, Effect::kIdentity).none_at("0");
  const auto after = [&](const char* value) {
    rows.apply_as_given(std::vector<GivenOption>{{"share", value}});
    return rows.record();
  };
  EXPECT_EQ(rows.record(), (Record{{"share", ""}}));
  EXPECT_EQ(after("0.5"), (Record{{"share", "0.5"}}));
  EXPECT_EQ(after("0.0"), (Record{{"share", ""}}));
  EXPECT_THAT(rows.arguments(), ElementsAre("--share=0")) << "it undoes what a file says";
}

TEST(OptionSet, RowsAreTheFields) {
  Set set;
  const std::vector<GivenOption> given = {{"layers", "3"}, {"gloss", "0.25"}, {"colour", ""},  {"brush", "fine"},
                                          {"wet", "off"},  {"quick", "true"}, {"file", "a.b"}, {"other", "?"}};
  set.rows.apply_as_given(given);
  set.paint.name = "wall";
  EXPECT_EQ(set.paint.layers, 3);
  EXPECT_EQ(set.paint.gloss, 0.25);
  EXPECT_EQ(set.paint.colour, Colour::kBlue);
  EXPECT_EQ(set.paint.brush, "fine");
  EXPECT_FALSE(set.paint.wet);
  EXPECT_TRUE(set.paint.quick);
  EXPECT_THAT(set.rows.arguments(), ElementsAre("wall", "--file=a.b", "--layers=3", "--gloss=0.25", "--colour=blue",
                                                "--brush=fine", "--wet=off", "--quick"));
  set.rows.reset();
  EXPECT_FALSE(set.paint.layers);
  EXPECT_TRUE(set.paint.wet);
  EXPECT_THAT(set.rows.arguments(), testing::IsEmpty());
}

TEST(OptionSet, ValuesOutOfBoundsAreRefused) {
  Set set;
  const auto refused = [&set](const char* name, const char* value) {
    const GivenOption given{name, value};
    return refusal([&] { set.rows.apply({&given, 1}); });
  };
  EXPECT_EQ(refused("layers", "10"), "--layers 10: expected a whole number from 1 to 9");
  EXPECT_EQ(refused("gloss", "2"), "--gloss 2: expected a number from 0 to 1");
  EXPECT_EQ(refused("colour", "green"), "--colour green: expected red or blue");
  EXPECT_EQ(refused("brush", "wide"), "--brush wide: expected broad or fine");
  EXPECT_EQ(refused("wet", "maybe"), "--wet maybe: expected on or off");
  EXPECT_EQ(refused("file", ""), "--file: expected a value that is not empty");
}

TEST(OptionSet, WhatWasGivenIsRepeatedEvenIfItIsTheDefault) {
  Set set;
  const GivenOption given{"gloss", "0.5"};
  set.rows.apply({&given, 1});
  EXPECT_THAT(set.rows.arguments(), testing::IsEmpty());
  set.rows.apply_as_given({&given, 1});
  EXPECT_THAT(set.rows.arguments(), ElementsAre("--gloss=0.5"));
}

TEST(OptionSet, TheRecordIsOfWhatBearsOnTheBits) {
  Set set;
  set.paint.name = "wall";
  EXPECT_EQ(set.rows.record(), (Record{{"name", "wall"}, {"layers", ""}, {"gloss", "0.5"}}));
}

TEST(OptionSet, ANameIsDeclaredOnce) {
  Set set;
  Paint another;
  EXPECT_THROW(another.declare(set.rows), BugError);
}

TEST(OptionSet, WordsFollowTheirTableAndNotTheirPositions) {
  EXPECT_EQ(word_of(Colour::kBlue), "blue");
  EXPECT_EQ(read_enum<Colour>("colour", "red"), Colour::kRed);
  EXPECT_THROW(word_of(Colour{}), BugError);
}

}  // namespace
}  // namespace lockstep::config
