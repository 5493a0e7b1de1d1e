#include "lockstep/datasets/options/pack_options.h"

#include "lockstep/base/error.h"

namespace lockstep::datasets {

void PackOptions::declare(config::OptionSet& options) {
  using enum config::Effect;
  options.number("size", "PX", "larger images are resized: their shorter side gets so many pixels", &size, 1, 1 << 16,
                 kNone);
  options.word("codec", "how images are stored; keep: as they are, and what is resized as JPEG or PNG", &codec, kNone);
  options.number("quality", "1-100", "of JPEGs that are encoded (left out: 90)", &quality, 1, 100, kNone);
  options.word("exif", "turn what is encoded anew, as train's --exif (left out: on)", &exif, kNone);
  options.toggle("shuffle", "off: samples keep the order that they have", &shuffle, kNone);
  options.number("seed", "N", "gives another order (left out: 1)", &seed, 0, int64_t{1} << 62, kNone);
  options.number("shards", "N", "files a part (left out: by --shard-size)", &shards, 1, 1 << 16, kNone);
  options.number("shard-size", "MIB", "of a file, at most (left out: 256)", &shard_size, 1, 1 << 20, kNone);
  options.number("workers", "N", "threads (left out: one for each core)", &workers, 1, 256, kNone);
  options.number("skip-bad", "N", "leave out up to N images that can't be decoded", &skip_bad, 0, 1 << 30, kNone);
  options.flag("overwrite", "replace packed data that is in OUT", &overwrite, kNone);
}

void PackOptions::check() const {
  if (quality && (codec == PackCodec::kPng || codec == PackCodec::kRaw)) {
    throw ConfigError("--quality: is that of JPEGs, and --codec ", config::word_of(codec), " has none; leave it out");
  }
  if (quality && !recodes()) {
    throw ConfigError(
        "--quality: all images are kept as they are; say --codec jpeg, or --size PX, to encode them anew");
  }
  if (exif && !recodes()) {
    throw ConfigError("--exif: all images are kept as they are, with their orientation; say it when you train");
  }
}

}  // namespace lockstep::datasets
