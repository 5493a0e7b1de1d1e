#include "lockstep/apps/commands/data_commands.h"

#include <algorithm>

#include "lockstep/apps/commands/plain_commands.h"
#include "lockstep/base/error.h"
#include "lockstep/config/inputs.h"

namespace lockstep::apps {

std::string PackCommand::help(const std::string& rows) {
  return cat(R"(Usage: lockstep pack DIR OUT [options]

Packs the images of DIR, which train imagenet or train unet takes as --data, into a few large files in the folder OUT,
shuffled and with checksums: they are read faster than a file for each image, above all over a network. Every image is
decoded once; the first that can't be ends the packing. Images are kept byte for byte if nothing else is asked for.
)",
             rows, R"(
Examples:
  lockstep pack photos packed && lockstep train imagenet --data packed
  lockstep pack photos small --size 256 --quality 92
)");
}

void PackCommand::declare(config::OptionSet& options) {
  options.section("Options");
  options.subject("data", &pack.data, config::Effect::kNone);
  options.subject("out", &pack.out, config::Effect::kNone);
  pack.declare(options);
  declare_json(options, &json);
}

void PackCommand::take(const config::Given& line) {
  if (line.words.size() != 2) {
    throw ConfigError(
        "lockstep pack: expected two words, DIR and OUT: the data, and the folder that it is packed into; "
        "pack --help says more");
  }
  pack.data = line.words[0];
  pack.out = line.words[1];
  config::require_there("pack", pack.data);
  pack.check();
}

std::string DataCommand::help(const std::string& rows) {
  return cat(R"(Usage: lockstep data DIR [options]

Says what training would find in DIR: classes and their counts, sizes, formats, the values of masks, what would be held
out to validate on; and all that is wrong with it, a line for each problem. Every image is decoded.
Ends with 0, or with 65 if training would not get through.
)",
             rows, R"(
Examples:
  lockstep data photos --sheet photos.png
  lockstep data packed --verify
)");
}

void DataCommand::declare(config::OptionSet& options) {
  options.section("Options");
  options.subject("data", &survey.data, config::Effect::kNone);
  survey.declare(options);
  declare_json(options, &json);
}

void DataCommand::take(const config::Given& line) {
  survey.data = only_word(line, cat("lockstep ", kName), "DIR");
  config::require_there("data", survey.data);
  survey.check();
}

std::string DrawCommand::help(const std::string& rows) {
  return cat(R"(Usage: lockstep draw shapes|masks DIR [options]

Draws images into the new folder DIR, to try what takes pictures of one's own. shapes: ten classes of textured shapes, as
train imagenet --data DIR takes them. masks: shapes and the masks that segment them, as train unet --data DIR does.
)",
             rows, R"(
Examples:
  lockstep draw shapes shapes && lockstep train imagenet --data shapes --size 64
  lockstep draw masks cells --samples 100 && lockstep train unet --data cells
)");
}

void DrawCommand::declare(config::OptionSet& options) {
  options.section("Options");
  options.subject("kind", &kind, config::Effect::kNone);
  options.subject("out", &draw.out, config::Effect::kNone);
  draw.declare(options);
  declare_json(options, &json);
}

void DrawCommand::take(const config::Given& line) {
  if (line.words.size() != 2) {
    throw ConfigError(
        "lockstep draw: expected two words, shapes or masks and DIR: what is drawn, and the folder that is "
        "made; draw --help says more");
  }
  kind = line.words[0];
  constexpr auto kKinds = words(datasets::DrawnKind{});
  const auto* const found = std::ranges::find(kKinds, kind, &config::Word<datasets::DrawnKind>::word);
  if (found == kKinds.end()) throw ConfigError("lockstep draw ", kind, ": expected shapes or masks");
  draw.kind = found->value;
  draw.out = line.words[1];
}

}  // namespace lockstep::apps
