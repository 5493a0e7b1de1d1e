#include "lockstep/datasets/drawn/shape_masks.h"

#include <algorithm>

#include "lockstep/base/philox.h"
#include "lockstep/datasets/drawn/drawing.h"
#include "lockstep/datasets/drawn/drawn_images.h"

namespace lockstep::datasets {
namespace {

constexpr Colour kBlack{0, 0, 0}, kWhite{1, 1, 1};

// A texture of a random colour near `base`, and a second that lies `contrast` of the way from it to another random one.
Paint random_paint(RandomStream& random, int side, const Colour& base, float contrast) {
  const auto texture = static_cast<Texture>(random.below(kTextures));
  const float width = std::max(2.f, static_cast<float>(side) * random.uniform(.05f, .1f));
  const Frame frame = Frame::random_turn(random, random.uniform(0, width), 0, width);
  const Colour first = Colour::random(random).towards(base, .5f);
  return {
      .texture = texture, .frame = frame, .first = first, .second = first.towards(Colour::random(random), contrast)};
}

// Draws one shape, nearly plain, over what is there, into the image and the mask.
void draw_shape(RandomStream& random, Canvas& canvas, std::span<int64_t> mask) {
  const int side = canvas.side();
  const auto length = static_cast<float>(side);
  const auto shape = static_cast<Shape>(random.below(kMaskClasses - 1));
  const Paint paint = random_paint(random, side, kWhite, .1f);
  const float radius = length * random.uniform(.15f, .3f);
  const float x = random.uniform(0, length), y = random.uniform(0, length);
  const Frame frame = Frame::random_turn(random, x, y, radius);
  for (int row = 0; row < side; ++row) {
    for (int column = 0; column < side; ++column) {
      const auto right = static_cast<float>(column), down = static_cast<float>(row);
      if (!covers(shape, frame.of(right, down))) continue;
      canvas.set(column, row, paint.at(right, down));
      mask[static_cast<size_t>(row * side + column)] = 1 + static_cast<int64_t>(shape);
    }
  }
}

class ShapeMasks final : public DrawnImages {
 public:
  ShapeMasks(const ShapeMasksOptions& options, uint32_t split, int64_t size)
      : DrawnImages("shapes with masks", options.seed, split, options.side, size) {}

  std::vector<data::Field> fields() const override {
    return {image(), {.name = "target", .dtype = at::kLong, .shape = {side_, side_}}};
  }

  void read(int64_t index, const Draw& /*draw*/, std::span<const at::Tensor> rows,
            data::ReadStats& /*stats*/) const override {
    data::check_index(index, size());
    const size_t area = static_cast<size_t>(side_) * static_cast<size_t>(side_);
    draw_shape_mask(seed_, split_, static_cast<uint64_t>(index), side_, {rows[0].mutable_data_ptr<float>(), 3 * area},
                    {rows[1].mutable_data_ptr<int64_t>(), area});
  }

  int64_t classes() const override { return kMaskClasses; }
};

}  // namespace

void draw_shape_mask(uint64_t seed, uint32_t split, uint64_t index, int side, std::span<float> pixels,
                     std::span<int64_t> mask) {
  RandomStream random(seed, Purpose::kSynthetic, split, index);
  Canvas canvas(pixels, side);
  const Paint ground = random_paint(random, side, kBlack, .3f);
  for (int row = 0; row < side; ++row) {
    for (int column = 0; column < side; ++column) {
      canvas.set(column, row, ground.at(static_cast<float>(column), static_cast<float>(row)));
    }
  }
  std::fill(mask.begin(), mask.end(), 0);
  for (uint32_t shapes = 2 + random.below(4); shapes > 0; --shapes) draw_shape(random, canvas, mask);
  canvas.add_noise(random, random.uniform(0, .12f));
}

data::Splits shape_masks(ShapeMasksOptions options) {
  return {.train = std::make_shared<ShapeMasks>(options, 0, options.train_size),
          .test = std::make_shared<ShapeMasks>(options, 1, options.test_size),
          .validation = nullptr};
}

}  // namespace lockstep::datasets
