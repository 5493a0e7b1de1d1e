#include "lockstep/image/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/base/error.h"
#include "lockstep/image/crops.h"
#include "lockstep/image/encode.h"
#include "lockstep/image/flips.h"
#include "lockstep/image/orientation.h"
#include "lockstep/image/testing/pictures.h"

namespace lockstep::image {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Transforms = std::vector<std::shared_ptr<const Transform>>;

// Has no plan, and does nothing to pixels: what comes after it is applied to them.
class Nothing : public Transform {
 public:
  std::string text() const override { return "nothing"; }
  Slot slot() const override { return Slot::kOwn; }
  void apply(Sample&, RandomStream, Scratch&) const override {}
};

Pixels run(const Transforms& transforms, const std::vector<uint8_t>& bytes, const Draw& draw,
           const DecodeOptions& options = {}) {
  Decoder decoder;
  Scratch scratch;
  Sample sample;
  Pipeline::Times times;
  decoder.open(bytes, "picture", options);
  Pipeline(transforms).run(decoder, nullptr, nullptr, draw, scratch, sample, times);
  EXPECT_GT(times.decode_ns, 0);
  return std::move(sample.image);
}

TEST(Pipeline, APlanIsWhatItsTransformsDoOneByOne) {
  const auto bytes = encode_jpeg(picture({130, 90}));
  const auto nothing = std::make_shared<Nothing>();
  const Transforms lists[] = {{},
                              {random_resized_crop({32, 32}), flip_x()},
                              {resize_shorter(40), center_crop({32, 32})},
                              {center_crop({100, 60}), random_crop({64, 64}, 4), flip_y()},
                              {flip_x(1), random_crop({50, 50})},
                              {random_crop({40, 40}), random_crop({60, 60}), resize_to({20, 20})}};
  for (const Transforms& list : lists) {
    Transforms stepwise = {nothing};
    stepwise.insert(stepwise.end(), list.begin(), list.end());
    for (uint64_t i = 0; i < 20; ++i) {
      const Draw draw{5, 1, i};
      ASSERT_EQ(difference(run(list, bytes, draw), run(stepwise, bytes, draw)), 0) << Pipeline(list).text();
    }
  }
}

TEST(Pipeline, IsPlannedWithoutPixelsWhereItIsGeometryAlone) {
  const Pipeline crops({random_resized_crop({32, 32}), flip_x()});
  EXPECT_EQ(crops.unplanned(), "");
  const Draw draw{5, 1, 3};
  const auto geometry = crops.plan({130, 90}, draw);
  ASSERT_TRUE(geometry.has_value());
  EXPECT_EQ(geometry->result(), (Size{32, 32}));
  EXPECT_EQ(crops.plan({130, 90}, draw), geometry) << "by the draw";
  EXPECT_NE(crops.plan({130, 90}, {5, 1, 4}), geometry);
  const Pipeline other({flip_x(), std::make_shared<Nothing>()});
  EXPECT_EQ(other.unplanned(), "nothing");
  EXPECT_FALSE(other.plan({130, 90}, draw).has_value());
}

TEST(Pipeline, ARejectedDrawShiftsNobody) {
  const auto bytes = encode_jpeg(picture({130, 90}));
  const auto flipped = [&](const Transforms& list, uint64_t i) {
    const Draw draw{5, 1, i};
    const Pixels plain = run({list[0]}, bytes, draw);
    return difference(run(list, bytes, draw), plain) != 0;
  };
  // Crops that never fit draw ten times as many numbers; the flips stay the same.
  for (uint64_t i = 0; i < 30; ++i) {
    EXPECT_EQ(flipped({random_resized_crop({32, 32}, {.scale_low = 0.99}), flip_x()}, i),
              flipped({random_resized_crop({32, 32}), flip_x()}, i));
  }
}

TEST(Pipeline, EqualTransformsDrawNumbersOfTheirOwn) {
  const auto bytes = encode_jpeg(picture({130, 90}));
  int even = 0;
  for (uint64_t i = 0; i < 40; ++i) {
    even += difference(run({flip_x(), flip_x()}, bytes, {5, 1, i}), run({}, bytes, {5, 1, i})) == 0;
  }
  EXPECT_TRUE(even > 5 && even < 35) << even;
}

// Draws from the slots that it is given.
class Own : public Nothing {
 public:
  explicit Own(uint32_t slot) : slot_(slot) {}
  Slot slot() const override { return static_cast<Slot>(slot_); }

 private:
  uint32_t slot_;
};

TEST(Pipeline, SlotsThatCollideAreRefused) {
  Transforms flips(16, flip_x());
  flips.push_back(flip_y());
  EXPECT_NO_THROW(Pipeline{flips});
  flips.push_back(flip_x());  // takes the slot that flip_y has
  EXPECT_THROW(Pipeline{flips}, ConfigError);
  const auto own = [](uint32_t slot) { return std::make_shared<Own>(slot); };
  EXPECT_NO_THROW(Pipeline({own(2048), own(2048), own(2050)}));
  EXPECT_THROW(Pipeline({own(2048), own(2048), own(2049)}), ConfigError);
  EXPECT_THROW(Pipeline({own(4095), own(4095)}), ConfigError);
}

TEST(Pipeline, FastDecodingResizesWhatIsLeft) {
  const auto bytes = encode_jpeg(flat({400, 300}, 3, 90));
  const Pixels fast = run({random_resized_crop({32, 32}), flip_x()}, bytes, {1, 2, 3}, {.fast = true});
  EXPECT_EQ(difference(fast, flat({32, 32}, 3, fast.at(0, 0)[0])), 0);
  EXPECT_EQ(fast.size(), (Size{32, 32}));
}

TEST(Pipeline, NamesItsTransforms) {
  EXPECT_EQ(Pipeline().text(), "as it is");
  EXPECT_EQ(Pipeline({random_resized_crop({224, 224}), flip_x()}).text(), "RandomResizedCrop 224, flip 0.5");
}

TEST(Pipeline, ErrorsOfPlansAndPixelsNameTheImage) {
  const Transforms evaluation = {resize_shorter(256), center_crop({224, 224})};
  const auto refusal = [](const Transforms& transforms, Size size) -> std::string {
    try {
      run(transforms, encode_png(flat(size, 1, 9)), {});
    } catch (const DataError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(evaluation, {1, 65000}), "");
  EXPECT_THAT(refusal(evaluation, {1, 70000}), StartsWith("picture: Resize 256 of 1 x 70000 pixels gives a side of"));
  EXPECT_THAT(refusal({resize_shorter(256)}, {1, 65000}), StartsWith("picture: the transforms make 256 x 16640000"));
  EXPECT_THAT(refusal({std::make_shared<Nothing>(), resize_shorter(256)}, {1, 70000}), StartsWith("picture: Resize"));
}

// The image and its mask, both raw, of equal values.
struct Pair {
  explicit Pair(Size size) : size(size), bytes(static_cast<size_t>(size.width * size.height)) {
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i % 3);
  }
  void open(Decoder& decoder, const char* name, MaskTurn turn = MaskTurn::kBySize) const {
    decoder.open_raw(bytes, {.size = size, .channels = 1}, name, {.channels = 1, .mask_turn = turn});
  }
  Size size;
  std::vector<uint8_t> bytes;
};

TEST(Pipeline, AMaskFollowsItsImage) {
  const Pair pair({40, 30});
  const LabelMap classes({0, 1, 2});
  const Pipeline pipeline(
      {center_crop({36, 36}), random_crop({32, 32}), flip_x(), flip_y()});  // moves pixels, mixes none
  Decoder image, mask;
  Scratch scratch;
  Sample sample;
  Pipeline::Times times;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (uint64_t i = 0; i < 10; ++i) {
      pair.open(image, "image");
      pair.open(mask, "mask", MaskTurn::kAsImage);
      image.orient(orientation);
      pipeline.run(image, &mask, &classes, {1, 0, i}, scratch, sample, times);
      ASSERT_EQ(sample.mask.size(), (Size{32, 32}));
      ASSERT_EQ(difference(sample.image, sample.mask), 0) << orientation;
    }
  }
}

// How a mask without an orientation of its own lies beside a picture that has one.
struct TurnCase {
  MaskTurn turn;
  Size of_image, of_mask;
  int orientation;
  const char* expected;  // "turned", "upright", or what is in the error
};

TEST(Pipeline, AMaskIsTurnedAsItsSizeOrTheOptionsSay) {
  constexpr auto kBySize = MaskTurn::kBySize, kAsImage = MaskTurn::kAsImage, kNone = MaskTurn::kNone;
  const Size wide{40, 30}, tall{30, 40}, square{30, 30};
  const std::vector<TurnCase> cases = {
      {kBySize, wide, wide, 6, "turned"},      {kBySize, wide, tall, 6, "upright"},
      {kBySize, wide, wide, 3, "--exif both"}, {kBySize, square, square, 6, "--exif image"},
      {kAsImage, wide, wide, 6, "turned"},     {kAsImage, wide, wide, 3, "turned"},
      {kAsImage, square, square, 8, "turned"}, {kAsImage, wide, tall, 6, "has 30 x 40"},
      {kNone, wide, tall, 6, "upright"},       {kNone, wide, wide, 3, "upright"},
      {kNone, square, square, 8, "upright"},   {kNone, wide, wide, 6, "a mask of 40 x 30"}};
  const LabelMap classes({0, 1, 2});
  for (const TurnCase& each : cases) {
    Decoder image, mask;
    Scratch scratch;
    Sample sample;
    Pipeline::Times times;
    const Pair picture(each.of_image), values(each.of_mask);
    picture.open(image, "a.jpg");
    values.open(mask, "a.png", each.turn);
    image.orient(each.orientation);
    std::string found;
    try {
      Pipeline().run(image, &mask, &classes, {}, scratch, sample, times);
      std::vector<uint32_t> turned(values.bytes.begin(), values.bytes.end());
      turn(turned, each.of_mask, each.orientation);
      const uint32_t first = sample.mask.at(0, 0)[0];
      found = first == turned[0] && sample.mask.at(1, 0)[0] == turned[1] ? "turned" : "upright";
      EXPECT_TRUE(found == "turned" || first == values.bytes[0]);
    } catch (const DataError& error) {
      found = error.what();
    }
    EXPECT_THAT(found, HasSubstr(each.expected)) << each.of_image.width << " " << each.orientation;
  }
}

TEST(Pipeline, AMaskWithoutClassesIsNumberedByItsOwnValues) {
  Pair pair({4, 3});
  for (uint8_t& value : pair.bytes) value = static_cast<uint8_t>(100 * value + 5);
  const LabelMap classes({5, 105, 205, 255});
  Decoder image, mask;
  Scratch scratch;
  Sample numbered, sample;
  Pipeline::Times times;
  for (Sample* out : {&numbered, &sample}) {
    pair.open(image, "image");
    pair.open(mask, "mask");
    Pipeline().run(image, &mask, out == &sample ? &classes : nullptr, {}, scratch, *out, times);
  }
  EXPECT_EQ(numbered.mask_values, (std::vector<uint32_t>{5, 105, 205}));
  EXPECT_EQ(difference(numbered.mask, sample.mask), 0);
  EXPECT_TRUE(sample.mask_values.empty());
  pair.open(image, "image");
  Pipeline().run(image, nullptr, nullptr, {}, scratch, numbered, times);
  EXPECT_TRUE(numbered.mask_values.empty());
}

TEST(Pipeline, AMaskHasItsImagesSize) {
  const LabelMap classes({0, 1, 2});
  Decoder image, mask;
  Scratch scratch;
  Sample sample;
  Pipeline::Times times;
  const auto run_pair = [&](const Pair& of_image, const Pair& of_mask, int orientation) {
    of_image.open(image, "a.png");
    of_mask.open(mask, "a_mask.png");
    image.orient(orientation);
    Pipeline().run(image, &mask, &classes, {}, scratch, sample, times);
  };
  run_pair(Pair({40, 30}), Pair({30, 40}), 6);  // the mask is upright
  EXPECT_EQ(sample.mask.size(), (Size{30, 40}));
  EXPECT_EQ(sample.mask.at(1, 0)[0], 1);
  try {
    run_pair(Pair({40, 30}), Pair({30, 40}), 1);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(),
                 "a_mask.png: a mask of 30 x 40 pixels, and its image a.png has 40 x 30; a mask has its image's size");
  }
}

}  // namespace
}  // namespace lockstep::image
