#include "lockstep/datasets/packing/recoder.h"

#include <algorithm>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/datasets/image_setup.h"
#include "lockstep/image/crops.h"
#include "lockstep/image/encode.h"

namespace lockstep::datasets {
namespace {

constexpr int kUsualQuality = 90;
constexpr int kMostJpegSide = 65'500;

Codec codec_of(image::Format format) {
  switch (format) {
    case image::Format::kJpeg:
      return Codec::kJpeg;
    case image::Format::kPng:
      return Codec::kPng;
    case image::Format::kGif:
      return Codec::kGif;
    case image::Format::kNpy:
      return Codec::kNpy;
    case image::Format::kRaw:
      return Codec::kRaw;
  }
  throw BugError("an image of no format");
}

// What an image of the codec `stored` becomes that is encoded anew.
Codec target_of(PackCodec wanted, Codec stored) {
  switch (wanted) {
    case PackCodec::kJpeg:
      return Codec::kJpeg;
    case PackCodec::kPng:
      return Codec::kPng;
    case PackCodec::kRaw:
      return Codec::kRaw;
    case PackCodec::kKeep:
      break;
  }
  return stored == Codec::kJpeg || stored == Codec::kRaw ? stored : Codec::kPng;
}

// Row after row, one byte a pixel or R G B.
std::vector<uint8_t> raw_bytes(const image::Pixels& pixels) {
  std::vector<uint8_t> bytes;
  const int channels = pixels.channels();
  bytes.reserve(static_cast<size_t>(pixels.width()) * static_cast<size_t>(pixels.height() * channels));
  for (int y = 0; y < pixels.height(); ++y) {
    for (int x = 0; x < pixels.width(); ++x) bytes.insert(bytes.end(), pixels.at(x, y), pixels.at(x, y) + channels);
  }
  return bytes;
}

// Whether a PNG's pixel can be that value of a mask: a level, or a colour as mask_value() numbers them.
bool fits_a_png(uint32_t value) {
  const uint32_t red = value >> 16 & 0xff, green = value >> 8 & 0xff, blue = value & 0xff;
  return value < 256 || (value >> 24 == 0xff && !(red == green && green == blue));
}

// A PNG that decode_values() reads as the same values: of grey levels, or of colours.
std::vector<uint8_t> mask_png(const image::Pixels& numbers, const std::vector<uint32_t>& values,
                              const std::string& name) {
  const auto wrong = std::find_if_not(values.begin(), values.end(), fits_a_png);
  if (wrong != values.end()) {
    throw DataError(name, ": its mask has the value ", *wrong,
                    ", and a resized one is stored as a PNG of levels up to 255 or of colours; leave --size and ",
                    "--codec out, or number the classes anew");
  }
  image::Pixels pixels;
  pixels.reshape(numbers.size(), values.back() < 256 ? 1 : 3);
  for (int y = 0; y < numbers.height(); ++y) {
    for (int x = 0; x < numbers.width(); ++x) {
      const uint32_t value = values.at(*numbers.at(x, y));
      const int channels = pixels.channels();
      for (int c = 0; c < channels; ++c) {
        pixels.at(x, y)[c] = static_cast<uint8_t>(value < 256 ? value : value >> (8 * (channels - 1 - c)));
      }
    }
  }
  return image::encode_png(pixels);
}

uint16_t side_of(int pixels) { return static_cast<uint16_t>(pixels <= UINT16_MAX ? pixels : 0); }

// Images that are all kept are decoded for nothing but a check.
image::DecodeOptions turned_for(const PackOptions& options) {
  return options.recodes() ? turned_by(options.exif) : image::DecodeOptions{.mask_turn = image::MaskTurn::kIfItFits};
}

}  // namespace

PackedRecord PackedSample::record() const {
  PackedRecord whole = head;
  whole.image = image;
  whole.mask = mask;
  return whole;
}

Recoder::Recoder(const ImageSource& source, const PackOptions& options)
    : source_(source),
      options_(options),
      whole_(source, turned_for(options)),
      as_it_is_(std::make_shared<image::Pipeline>()) {
  if (options.size) {
    smaller_ = std::make_shared<image::Pipeline>(
        std::vector<std::shared_ptr<const image::Transform>>{image::resize_shorter(*options.size)});
  }
}

PackedSample Recoder::operator()(int64_t index) {
  whole_.open(index);
  const image::ImageInfo info = whole_.info();
  const image::Size upright = info.upright();
  const bool shrinks = options_.size && std::min(upright.width, upright.height) > *options_.size;
  whole_.decode(shrinks ? *smaller_ : *as_it_is_);

  const Codec stored = codec_of(info.format), target = target_of(options_.codec, stored);
  const bool same = options_.codec == PackCodec::kKeep || (stored == target && !options_.quality);
  PackedSample sample = kept();
  sample.head.codec = stored;
  sample.name = source_.short_name_of(index);
  const bool anew = shrinks || !same;
  const Files turned = turned_otherwise(index);
  if ((anew || turned.image) && whole_.image().has_alpha() && target != Codec::kPng) {
    throw DataError(source_.name_of(index), ": its transparency has no place in ",
                    target == Codec::kJpeg ? "a JPEG" : "raw pixels", "; pack it with --codec png, or as it is");
  }
  if (anew || turned.image) {
    encode_image(target, sample);
  } else if (stored == Codec::kRaw) {
    sample.image = raw_bytes(whole_.image());  // CIFAR's are planes
  }
  if (source_.has_masks() && (anew || turned.mask)) {
    sample.mask = mask_png(whole_.mask(), sample.mask_values, shown(sample.name));
  }
  sample.head.class_number = static_cast<int32_t>(source_.class_of(index));
  sample.head.width = side_of(whole_.image().width());
  sample.head.height = side_of(whole_.image().height());
  if (sample.head.codec == Codec::kRaw && (sample.head.width == 0 || sample.head.height == 0)) {
    throw DataError(source_.name_of(index),
                    ": raw images have at most 65535 pixels a side; use --codec png, or --size");
  }
  sample.source = index;
  return sample;
}

Recoder::Files Recoder::turned_otherwise(int64_t index) {
  const bool is_pair = source_.has_masks();
  const auto has_orientation = [&](const Encoded& file, const std::string& name) {
    return open_encoded(header_, file, name).orientation != 1;
  };
  switch (options_.exif.value_or(Exif::kOn)) {
    case Exif::kOn:
      return {};
    case Exif::kOff:
      return {.image = has_orientation(whole_.stored().image, source_.name_of(index)),
              .mask = is_pair && has_orientation(whole_.stored().mask, source_.mask_name_of(index))};
    case Exif::kBoth:
    case Exif::kImage:
      break;
  }
  const bool is_turned = is_pair && whole_.info().orientation != 1;
  return {.image = is_turned, .mask = is_turned};
}

PackedSample Recoder::kept() const {
  const EncodedPair& stored = whole_.stored();
  PackedSample sample;
  sample.image.assign(stored.image.bytes.begin(), stored.image.bytes.end());
  sample.mask.assign(stored.mask.bytes.begin(), stored.mask.bytes.end());
  sample.mask_values = whole_.mask_values();
  sample.stored_bytes = whole_.bytes();
  return sample;
}

void Recoder::encode_image(Codec to, PackedSample& sample) const {
  const image::Pixels& pixels = whole_.image();
  if (to == Codec::kJpeg && std::max(pixels.width(), pixels.height()) > kMostJpegSide) {
    throw DataError(shown(sample.name), ": JPEGs have at most ", kMostJpegSide,
                    " pixels a side; use --codec png, or --size");
  }
  sample.head.codec = to;
  if (to == Codec::kJpeg)
    sample.image = image::encode_jpeg(pixels, {.quality = options_.quality.value_or(kUsualQuality)});
  if (to == Codec::kPng) sample.image = image::encode_png(pixels);
  if (to == Codec::kRaw) sample.image = raw_bytes(pixels);
}

std::string packing_of(const PackOptions& options) {
  if (!options.recodes()) return "as they are";
  std::string text = options.size ? cat("at most ", *options.size, " pixels") : "";
  const auto add = [&text](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  if (options.codec != PackCodec::kKeep) add(cat("as ", config::word_of(options.codec)));
  if (options.codec == PackCodec::kJpeg || (options.codec == PackCodec::kKeep && options.quality)) {
    add(cat("quality ", options.quality.value_or(kUsualQuality)));
  }
  if (options.exif == Exif::kOff) add("turned as they were stored");
  if (options.exif == Exif::kBoth) add("masks turned as their images");
  if (options.exif == Exif::kImage) add("images turned without their masks");
  return text;
}

}  // namespace lockstep::datasets
