#include "lockstep/datasets/drawn/digit_strokes.h"

#include "lockstep/base/error.h"

namespace lockstep::datasets {
namespace {

template <size_t N>
constexpr Glyph glyph(const Point (&points)[N], std::string_view strokes) {
  static_assert(N <= kMostPoints);
  Glyph made{.points = {}, .count = N, .strokes = strokes};
  for (size_t i = 0; i < N; ++i) made.points[i] = points[i];
  return made;
}

constexpr Glyph kZero[] = {
    glyph({{.05f, -1}, {-.45f, -.65f}, {-.6f, 0}, {-.4f, .7f}, {.05f, 1}, {.48f, .65f}, {.6f, -.05f}, {.42f, -.72f}},
          "abcdefgha"),
    glyph({{.2f, -.95f}, {-.3f, -.85f}, {-.55f, 0}, {-.3f, .85f}, {.2f, .95f}, {.55f, .1f}, {.4f, -.7f}, {-.1f, -.8f}},
          "abcdefgh"),
};
constexpr Glyph kOne[] = {
    glyph({{0, -1}, {0, 0}, {0, 1}}, "abc"),
    glyph({{-.38f, -.55f}, {.05f, -1}, {.05f, 0}, {.05f, 1}}, "ab|bcd"),
    glyph({{-.3f, -.7f}, {0, -1}, {0, 1}, {-.4f, 1}, {.4f, 1}}, "ab|bc|de"),
};
constexpr Glyph kTwo[] = {
    glyph({{-.55f, -.55f}, {-.25f, -.95f}, {.25f, -.95f}, {.5f, -.5f}, {.1f, .25f}, {-.55f, .95f}, {.6f, .95f}},
          "abcdef|fg"),
    glyph({{-.5f, -.75f}, {.05f, -1}, {.5f, -.6f}, {.2f, .1f}, {-.35f, .85f}, {-.5f, .55f}, {0, .7f}, {.6f, .9f}},
          "abcdefgh"),
};
constexpr Glyph kThree[] = {
    glyph({{-.5f, -.8f}, {.05f, -1}, {.45f, -.6f}, {-.1f, -.05f}, {.55f, .4f}, {.1f, 1}, {-.55f, .75f}}, "abcd|defg"),
    glyph({{-.5f, -.95f}, {.5f, -.95f}, {-.05f, -.2f}, {.5f, .2f}, {.4f, .8f}, {-.1f, 1}, {-.55f, .75f}},
          "ab|bc|cdefg"),
};
constexpr Glyph kFour[] = {
    glyph({{.25f, -1}, {-.6f, .3f}, {.65f, .3f}, {.25f, 1}}, "ab|bc|ad"),
    glyph({{-.45f, -.9f}, {-.55f, .05f}, {.5f, .05f}, {.42f, -.9f}, {.38f, 1}}, "ab|bc|de"),
};
constexpr Glyph kFive[] = {
    glyph({{.5f, -.95f}, {-.4f, -.95f}, {-.45f, -.15f}, {.15f, -.3f}, {.55f, .3f}, {.1f, .98f}, {-.55f, .75f}},
          "ab|bc|cdefg"),
    glyph({{.55f, -.9f}, {-.2f, -.95f}, {-.4f, -.2f}, {.3f, -.1f}, {.45f, .5f}, {0, .95f}, {-.5f, .9f}}, "abc|cdefg"),
};
constexpr Glyph kSix[] = {
    glyph(
        {{.4f, -.95f}, {-.2f, -.6f}, {-.55f, .2f}, {-.35f, .85f}, {.15f, 1}, {.52f, .55f}, {.15f, .05f}, {-.45f, .4f}},
        "abcdefgh"),
    glyph({{.05f, -1}, {-.4f, -.2f}, {-.45f, .6f}, {0, 1}, {.45f, .6f}, {.05f, .2f}, {-.4f, .6f}}, "abcdefg"),
};
constexpr Glyph kSeven[] = {
    glyph({{-.6f, -.9f}, {.6f, -.9f}, {.15f, 0}, {-.1f, 1}}, "ab|bcd"),
    glyph({{-.55f, -.9f}, {.6f, -.95f}, {.2f, 0}, {-.15f, 1}, {-.25f, .05f}, {.55f, 0}}, "ab|bcd|ef"),
};
constexpr Glyph kEight[] = {
    glyph({{.45f, -.65f}, {0, -1}, {-.42f, -.6f}, {0, -.05f}, {.5f, .5f}, {0, 1}, {-.5f, .5f}, {0, -.05f}},
          "abcdefgha"),
    glyph({{0, -1}, {-.4f, -.55f}, {0, -.1f}, {.4f, -.55f}, {-.5f, .45f}, {0, 1}, {.5f, .45f}}, "abcda|cefgc"),
};
constexpr Glyph kNine[] = {
    glyph({{.45f, -.5f}, {.05f, -1}, {-.45f, -.6f}, {-.1f, -.1f}, {.5f, -.9f}, {.4f, .2f}, {.3f, 1}}, "abcda|efg"),
    glyph({{.5f, -.6f}, {0, -1}, {-.48f, -.55f}, {-.05f, -.05f}, {.48f, .2f}, {.1f, .95f}, {-.45f, .8f}}, "abcda|aefg"),
};

constexpr std::array<std::span<const Glyph>, 10> kGlyphs = {kZero, kOne, kTwo,   kThree, kFour,
                                                            kFive, kSix, kSeven, kEight, kNine};

}  // namespace

std::span<const Glyph> digit_glyphs(uint32_t digit) {
  if (digit >= kGlyphs.size()) throw BugError("a digit ", digit, " was asked for");
  return kGlyphs[digit];
}

}  // namespace lockstep::datasets
