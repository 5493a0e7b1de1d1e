#include "lockstep/datasets/drawn/synthetic_digits.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/philox.h"
#include "lockstep/datasets/drawn/digit_strokes.h"
#include "lockstep/datasets/drawn/ink.h"

namespace lockstep::datasets {
namespace {

// The map from a glyph's coordinates to pixels: stretch, slant, turn, move.
struct Pose {
  float xx, xy, yx, yy;
  Point middle;

  static Pose random(RandomStream& random) {
    const float size = random.uniform(6.5f, 9.5f);
    const float wide = size * random.uniform(.8f, 1.25f);
    const float slant = random.uniform(-.3f, .3f);
    // Sine and cosine come from the tangent of half the angle, without libm, whose bits differ between versions.
    const float half = random.uniform(-.14f, .14f);
    const float sine = 2 * half / (1 + half * half);
    const float cosine = (1 - half * half) / (1 + half * half);
    const float middle = (Ink::kSide - 1) / 2.f;
    const float right = random.uniform(-2.5f, 2.5f);
    const float down = random.uniform(-2.5f, 2.5f);
    return {.xx = cosine * wide,
            .xy = -cosine * slant * size - sine * size,
            .yx = sine * wide,
            .yy = cosine * size - sine * slant * size,
            .middle = {middle + right, middle + down}};
  }

  Point operator()(Point p) const { return {middle.x + xx * p.x + xy * p.y, middle.y + yx * p.x + yy * p.y}; }
};

void draw_glyph(const Glyph& glyph, RandomStream& random, Ink& ink) {
  const Pose pose = Pose::random(random);
  const float wobble = random.uniform(.02f, .13f);
  const float radius = random.uniform(.6f, 1.7f);
  std::array<Point, kMostPoints> placed;
  for (size_t i = 0; i < glyph.count; ++i) {
    const float x = glyph.points[i].x + random.uniform(-wobble, wobble);
    const float y = glyph.points[i].y + random.uniform(-wobble, wobble);
    placed[i] = pose({x, y});
  }
  std::array<Point, kMostPoints> stroke;
  size_t length = 0;
  for (const char letter : glyph.strokes) {
    if (letter != '|') {
      stroke[length++] = placed[static_cast<size_t>(letter - 'a')];
      continue;
    }
    ink.curve(std::span(stroke).first(length), radius);
    length = 0;
  }
  ink.curve(std::span(stroke).first(length), radius);
}

// The disturbances: short strays of the pen, and a patch rubbed out.
void add_clutter(RandomStream& random, Ink& ink) {
  for (uint32_t strays = random.below(3); strays > 0; --strays) {
    const Point from{random.uniform(0, 27), random.uniform(0, 27)};
    const Point to{from.x + random.uniform(-4, 4), from.y + random.uniform(-4, 4)};
    ink.line(from, to, random.uniform(.3f, .9f));
  }
  if (random.below(3) == 0) {
    const auto left = static_cast<int>(random.below(24));
    const auto top = static_cast<int>(random.below(24));
    const auto width = 2 + static_cast<int>(random.below(4));
    const auto height = 2 + static_cast<int>(random.below(4));
    ink.erase(left, top, width, height);
  }
}

// Sets the contrast and adds noise to every pixel: each takes the mean of two random bytes, 8 pixels a block of random
// bits.
void write_noisy(const Ink& ink, RandomStream& random, std::span<float, Ink::kPixels> pixels) {
  const float contrast = random.uniform(.6f, 1.f);
  const float noise = random.uniform(0, .35f) / 255;
  const auto clean = ink.pixels();
  for (size_t i = 0; i < Ink::kPixels; i += 2) {
    const uint32_t bits = random.bits();
    const auto first = static_cast<float>(static_cast<int>(bits & 255) - static_cast<int>(bits >> 8 & 255));
    const auto second = static_cast<float>(static_cast<int>(bits >> 16 & 255) - static_cast<int>(bits >> 24));
    pixels[i] = std::min(1.f, std::max(0.f, contrast * clean[i] + noise * first));
    pixels[i + 1] = std::min(1.f, std::max(0.f, contrast * clean[i + 1] + noise * second));
  }
}

class SyntheticDigits final : public data::Dataset {
 public:
  SyntheticDigits(uint64_t seed, uint32_t split, int64_t size) : seed_(seed), split_(split), size_(size) {
    if (size < 1) throw ConfigError("synthetic digits: ", size, " of them are out of range; ask for at least 1");
  }

  int64_t size() const override { return size_; }

  std::vector<data::Field> fields() const override {
    return {{.name = "data", .dtype = at::kFloat, .shape = {1, Ink::kSide, Ink::kSide}},
            {.name = "target", .dtype = at::kLong, .shape = {}}};
  }

  void read(int64_t index, const Draw& /*draw*/, std::span<const at::Tensor> rows,
            data::ReadStats& /*stats*/) const override {
    data::check_index(index, size_);
    const std::span<float, Ink::kPixels> pixels(rows[0].mutable_data_ptr<float>(), Ink::kPixels);
    *rows[1].mutable_data_ptr<int64_t>() = draw_digit(seed_, split_, static_cast<uint64_t>(index), pixels);
  }

  // A function of all that decides a sample.
  std::string fingerprint() const override { return cat("digits, seed ", seed_, ", part ", split_, ", ", size_); }

  int64_t classes() const override { return 10; }
  std::string description() const override {
    return cat("digits drawn on the spot (seed ", seed_, "), ", split_ == 0 ? "train" : "test", ", ", size_,
               " images of ", Ink::kSide, "×", Ink::kSide);
  }

 private:
  uint64_t seed_;
  uint32_t split_;
  int64_t size_;
};

}  // namespace

int64_t draw_digit(uint64_t seed, uint32_t split, uint64_t index, std::span<float, 784> pixels) {
  RandomStream random(seed, Purpose::kSynthetic, split, index);
  const uint32_t digit = random.below(10);
  const auto glyphs = digit_glyphs(digit);
  Ink ink;
  draw_glyph(glyphs[random.below(static_cast<uint32_t>(glyphs.size()))], random, ink);
  add_clutter(random, ink);
  ink.blur(random.uniform(0, .2f));
  write_noisy(ink, random, pixels);
  return digit;
}

data::Splits synthetic_digits(SyntheticDigitsOptions options) {
  return {.train = std::make_shared<SyntheticDigits>(options.seed, 0, options.train_size),
          .test = std::make_shared<SyntheticDigits>(options.seed, 1, options.test_size),
          .validation = nullptr};
}

}  // namespace lockstep::datasets
