#include "lockstep/image/pipeline.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/image/named.h"

namespace lockstep::image {
namespace {

constexpr uint32_t kSlots = 4096;  // of a Draw

// Whether a mask without an orientation of its own is stored as its image is, and not upright.
bool turns_as_image(const Decoder& image, const Decoder& mask) {
  const MaskTurn turn = mask.options().mask_turn;
  if (turn == MaskTurn::kAsImage || turn == MaskTurn::kNone) return turn == MaskTurn::kAsImage;
  const bool fits_turned = mask.info().stored == image.info().stored;
  if (turn == MaskTurn::kBySize && fits_turned && image.info().stored == image.info().upright()) {
    throw DataError(mask.name(), ": whether the mask is turned as its image ", image.name(),
                    ", whose EXIF orientation is ", image.info().orientation,
                    ", can't be told by its size; say --exif both if masks are stored as their ",
                    "images, or --exif image if they are upright");
  }
  return fits_turned;
}

// A mask with an orientation of its own keeps it.
void orient_mask(const Decoder& image, Decoder& mask) {
  const ImageInfo& of_image = image.info();
  const bool is_open = of_image.orientation != 1 && !mask.info().exif_orientation;
  if (is_open && turns_as_image(image, mask)) mask.orient(of_image.orientation);
  const Size size = mask.info().upright(), wanted = of_image.upright();
  if (size == wanted) return;
  throw DataError(mask.name(), ": a mask of ", size.width, " x ", size.height, " pixels, and its image ", image.name(),
                  " has ", wanted.width, " x ", wanted.height, "; a mask has its image's size");
}

// Decodes what `geometry` needs and carries it out.
void decode_image(Decoder& decoder, Geometry geometry, Scratch& scratch, Pixels& out, Pipeline::Times& times) {
  const int64_t begin = monotonic_ns();
  const bool fast = decoder.options().fast;
  const Rect crop = fast ? geometry.source : needed(geometry, Filter::kBilinear);
  const Rect place = decoder.decode(crop, fast ? geometry.resized : crop.size(), scratch.image);
  const int64_t decoded = monotonic_ns();
  Rect held{crop.x - place.x, crop.y - place.y, scratch.image.width(), scratch.image.height()};
  if (place.size() != crop.size()) {  // smaller: what is at hand counts as the image
    held = {0, 0, held.width, held.height};
    geometry.image = held.size();
    geometry.source = place;
  }
  scratch.resizer.resize(scratch.image, held, geometry, Filter::kBilinear, out);
  times.decode_ns += decoded - begin;
  times.transform_ns += monotonic_ns() - decoded;
}

// Null `classes`: those of the mask's own values.
void decode_mask(Decoder& decoder, const LabelMap* classes, Geometry geometry, Scratch& scratch, Sample& out,
                 Pipeline::Times& times) {
  const int64_t begin = monotonic_ns();
  decoder.decode_values(scratch.values);
  const int64_t decoded = monotonic_ns();
  std::optional<LabelMap> own;
  if (classes == nullptr) {
    out.mask_values = values_in(scratch.values, decoder.name());
    classes = &own.emplace(out.mask_values);
  }
  classes->map(scratch.values, geometry.image, decoder.name(), scratch.mask);
  geometry.fill = 0;
  scratch.resizer.resize(scratch.mask, whole(geometry.image).source, geometry, Filter::kNearest, out.mask);
  times.decode_ns += decoded - begin;
  times.transform_ns += monotonic_ns() - decoded;
}

}  // namespace

Pipeline::Pipeline(std::vector<std::shared_ptr<const Transform>> transforms) : transforms_(std::move(transforms)) {
  std::map<Slot, uint32_t> used;
  std::set<uint32_t> taken;
  for (const auto& transform : transforms_) {
    slots_.push_back(static_cast<uint32_t>(transform->slot()) + used[transform->slot()]++);
    if (slots_.back() >= kSlots || !taken.insert(slots_.back()).second) {
      throw ConfigError("the transform \"", transform->text(), "\" would draw from slot ", slots_.back(),
                        slots_.back() < kSlots ? ", as another one does" : ", and the last one is 4095",
                        ": use at most 16 of a kind, and leave so many slots between kinds of your own");
    }
  }
}

std::string Pipeline::text() const {
  std::string text;
  for (const auto& transform : transforms_) text += (text.empty() ? "" : ", ") + transform->text();
  return text.empty() ? "as it is" : text;
}

// Plans the transforms that come first, as far as there are plans. Returns how many.
size_t Pipeline::plan_first(Geometry& geometry, const Draw& draw) const {
  size_t next = 0;
  for (; next < transforms_.size(); ++next) {
    const auto planned = transforms_[next]->plan(geometry, draw.stream(slots_[next]));
    if (!planned) break;
    geometry = *planned;
  }
  return next;
}

std::optional<Geometry> Pipeline::plan(Size image, const Draw& draw) const {
  Geometry geometry = whole(image);
  return plan_first(geometry, draw) == transforms_.size() ? std::optional(geometry) : std::nullopt;
}

std::string Pipeline::unplanned() const {
  constexpr Size kPhotograph{500, 375};
  Geometry geometry = whole(kPhotograph);
  const size_t planned = plan_first(geometry, {});
  return planned == transforms_.size() ? "" : transforms_[planned]->text();
}

void Pipeline::run(Decoder& image, Decoder* mask, const LabelMap* classes, const Draw& draw, Scratch& scratch,
                   Sample& out, Times& times) const {
  if (mask != nullptr) orient_mask(image, *mask);
  Geometry geometry = whole(image.info().upright());
  out.mask_values.clear();
  size_t next = 0;
  named(image.name(), [&] {
    next = plan_first(geometry, draw);
    decode_image(image, geometry, scratch, out.image, times);
  });
  if (mask != nullptr) {
    named(mask->name(), [&] { decode_mask(*mask, classes, geometry, scratch, out, times); });
  } else {
    out.mask.reshape({}, 1);
  }
  const int64_t begin = monotonic_ns();
  named(image.name(), [&] {
    for (; next < transforms_.size(); ++next) transforms_[next]->apply(out, draw.stream(slots_[next]), scratch);
  });
  times.transform_ns += monotonic_ns() - begin;
}

}  // namespace lockstep::image
