#include "lockstep/image/decoder.h"

#include "lockstep/base/error.h"
#include "lockstep/image/gif.h"
#include "lockstep/image/grey.h"
#include "lockstep/image/jpeg.h"
#include "lockstep/image/named.h"
#include "lockstep/image/npy.h"
#include "lockstep/image/orientation.h"
#include "lockstep/image/png.h"
#include "lockstep/image/raw.h"

namespace lockstep::image {

struct Decoder::State {
  FormatReader& reader_for(std::span<const uint8_t> bytes) {
    const auto format = format_of(bytes);
    if (format == Format::kJpeg) return jpeg;
    if (format == Format::kPng) return png;
    if (format == Format::kGif) return gif;
    if (format == Format::kNpy) return npy;
    if (bytes.empty()) throw DataError(name, ": the file is empty; remove or replace it");
    throw DataError(name, ": it is no image that is read here (JPEG, PNG, GIF, npy); remove the file, or convert it");
  }

  const ImageInfo& open(FormatReader& with, std::span<const uint8_t> bytes) {
    reader = nullptr;
    info = with.open({bytes, name, options});
    reader = &with;
    return info;
  }

  // The reader, which can be used once.
  FormatReader& take() {
    if (reader == nullptr) throw BugError("an image is decoded that is not open");
    return *std::exchange(reader, nullptr);
  }

  Rect decode(const Rect& crop, Size wanted, Pixels& out) {
    const Size upright = info.upright();
    if (crop.x < 0 || crop.y < 0 || crop.width < 1 || crop.height < 1 || crop.width > upright.width - crop.x ||
        crop.height > upright.height - crop.y) {
      throw BugError(name, ": a crop that is not within the image");
    }
    if (has_alpha(options.channels) && (!info.alpha || info.channels >= options.channels)) {
      throw DataError(name, ": an image of ", info.channels,
                      info.alpha ? " channels and alpha" : " channels without alpha", " where ", options.channels,
                      " are asked for");
    }
    const bool turns = info.orientation != 1, reduced = options.channels == 1 && info.channels == 3;
    const int channels = reduced ? 3 : options.channels;
    Pixels& first = turns ? turned : reduced ? colours : out;
    if (info.orientation > 4) wanted = {wanted.height, wanted.width};
    Rect place = take().decode(stored_rect(crop, info.stored, info.orientation), wanted, channels, first);
    if (turns) {
      turn(first, place, info.orientation, reduced ? colours : out);
      place = {0, 0, (reduced ? colours : out).width(), (reduced ? colours : out).height()};
    }
    if (reduced) to_grey(colours, out);
    return place;
  }

  JpegReader jpeg;
  PngReader png;
  GifReader gif;
  NpyReader npy;
  RawReader raw;
  FormatReader* reader = nullptr;  // of the open image, until it is decoded
  ImageInfo info;
  std::string name;
  DecodeOptions options;
  Pixels turned, colours;
};

Decoder::Decoder() : state_(std::make_unique<State>()) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

const ImageInfo& Decoder::info() const { return state_->info; }
const std::string& Decoder::name() const { return state_->name; }
const DecodeOptions& Decoder::options() const { return state_->options; }

const ImageInfo& Decoder::open(std::span<const uint8_t> bytes, const std::string& name, const DecodeOptions& options) {
  state_->name = name;
  state_->options = options;
  return named(name, [&]() -> const ImageInfo& { return state_->open(state_->reader_for(bytes), bytes); });
}

const ImageInfo& Decoder::open_raw(std::span<const uint8_t> bytes, const RawLayout& layout, const std::string& name,
                                   const DecodeOptions& options) {
  state_->name = name;
  state_->options = options;
  state_->raw.set_layout(layout);
  return named(name, [&]() -> const ImageInfo& { return state_->open(state_->raw, bytes); });
}

void Decoder::orient(int orientation) { state_->info.orientation = orientation; }

Rect Decoder::decode(const Rect& crop, Size wanted, Pixels& out) {
  return named(state_->name, [&] { return state_->decode(crop, wanted, out); });
}
void Decoder::decode_values(std::vector<uint32_t>& values) {
  State& state = *state_;
  named(state.name, [&] {
    state.take().decode_values(state.info, values);
    turn(values, state.info.stored, state.info.orientation);
  });
}

}  // namespace lockstep::image
