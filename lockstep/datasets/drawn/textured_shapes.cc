#include "lockstep/datasets/drawn/textured_shapes.h"

#include <algorithm>

#include "lockstep/base/philox.h"
#include "lockstep/datasets/drawn/drawing.h"
#include "lockstep/datasets/drawn/drawn_images.h"

namespace lockstep::datasets {
namespace {

// The width of stripes and checks, which grows with the image but is never too fine to be seen.
Frame texture_frame(RandomStream& random, int side) {
  const float width = std::max(2.f, static_cast<float>(side) * random.uniform(.08f, .13f));
  const float x = random.uniform(0, width), y = random.uniform(0, width);
  return Frame::random_turn(random, x, y, width);
}

// The ground's texture is faint, of middling colours and of any kind: only the shape's own texture tells the class.
Paint ground_paint(RandomStream& random, int side) {
  const auto texture = static_cast<Texture>(random.below(kTextures));
  const Colour first = Colour::random(random).towards({.5f, .5f, .5f}, .6f);
  const Colour second = first.towards(Colour::random(random), .15f);
  return {.texture = texture, .frame = texture_frame(random, side), .first = first, .second = second};
}

// A dark and a light colour keep texture and outline visible.
Paint shape_paint(RandomStream& random, int side, Texture texture) {
  const Colour dark = Colour::random(random).towards({0, 0, 0}, .6f);
  const Colour light = Colour::random(random).towards({1, 1, 1}, .6f);
  return {.texture = texture, .frame = texture_frame(random, side), .first = dark, .second = light};
}

class TexturedShapes final : public DrawnImages {
 public:
  TexturedShapes(const TexturedShapesOptions& options, uint32_t split, int64_t size)
      : DrawnImages("textured shapes", options.seed, split, options.side, size) {}

  std::vector<data::Field> fields() const override {
    return {image(), {.name = "target", .dtype = at::kLong, .shape = {}}};
  }

  void read(int64_t index, const Draw& /*draw*/, std::span<const at::Tensor> rows,
            data::ReadStats& /*stats*/) const override {
    data::check_index(index, size());
    const size_t values = size_t{3} * static_cast<size_t>(side_) * static_cast<size_t>(side_);
    *rows[1].mutable_data_ptr<int64_t>() = draw_textured_shape(seed_, split_, static_cast<uint64_t>(index), side_,
                                                               {rows[0].mutable_data_ptr<float>(), values});
  }

  int64_t classes() const override { return kTexturedClasses; }
  int64_t class_of(int64_t index) const override { return index % kTexturedClasses; }
};

}  // namespace

int64_t draw_textured_shape(uint64_t seed, uint32_t split, uint64_t index, int side, std::span<float> pixels) {
  RandomStream random(seed, Purpose::kSynthetic, split, index);
  const auto label = static_cast<int64_t>(index % kTexturedClasses);
  const auto shape = static_cast<Shape>(label / kTextures);
  const Paint ground = ground_paint(random, side);
  const Paint paint = shape_paint(random, side, static_cast<Texture>(label % kTextures));
  const auto length = static_cast<float>(side);
  const float radius = length * random.uniform(.26f, .42f);
  const float x = random.uniform(radius, length - radius), y = random.uniform(radius, length - radius);
  const Frame frame = Frame::random_turn(random, x, y, radius);
  Canvas canvas(pixels, side);
  for (int row = 0; row < side; ++row) {
    for (int column = 0; column < side; ++column) {
      const auto right = static_cast<float>(column), down = static_cast<float>(row);
      const bool inside = covers(shape, frame.of(right, down));
      canvas.set(column, row, (inside ? paint : ground).at(right, down));
    }
  }
  canvas.add_noise(random, random.uniform(0, .1f));
  return label;
}

data::Splits textured_shapes(TexturedShapesOptions options) {
  return {.train = std::make_shared<TexturedShapes>(options, 0, options.train_size),
          .test = std::make_shared<TexturedShapes>(options, 1, options.test_size),
          .validation = nullptr};
}

}  // namespace lockstep::datasets
