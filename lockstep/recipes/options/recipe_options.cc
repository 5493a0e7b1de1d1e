#include "lockstep/recipes/options/recipe_options.h"

#include <algorithm>
#include <memory>

#include "lockstep/base/error.h"
#include "lockstep/datasets/files/kind.h"
#include "lockstep/datasets/packed/manifest.h"
#include "lockstep/recipes/options/micrographs.h"
#include "lockstep/train/options/option_file.h"

namespace lockstep::recipes {
namespace {

void declare_size(config::OptionSet& options, const char* help, std::optional<int>* size) {
  options.number("size", "PX", help, size, 16, 4096, config::Effect::kIdentity);
}

constexpr double kLeastAlpha = 1e-3, kMostAlpha = 1e3;

void declare_alpha(config::OptionSet& options, const char* name, const char* help, std::optional<double>* alpha) {
  options.number(name, "ALPHA", help, alpha, 0, kMostAlpha, config::Effect::kIdentity).none_at("0");
}

void check_alpha(const char* name, const std::optional<double>& alpha) {
  if (alpha.value_or(0) == 0 || *alpha >= kLeastAlpha) return;
  throw ConfigError("--", name, ' ', *alpha, ": expected a number from ", kLeastAlpha, " to ", kMostAlpha,
                    ", or 0 for no ", name);
}

void check_augment(const datasets::ImageOptions& images, const std::string& data) {
  if (data.empty() && images.augment.value_or(datasets::Augment::kNone) != datasets::Augment::kNone)
    throw ConfigError("--augment: goes with --data; drawn images are not augmented");
}

// A few large grey images with fine structures. A step sees four parts of them, each laid down in one of eight ways,
// and normalises over all four, so that whole images meet the same statistics (docs/recipes.md).
train::Preset micrographs() {
  return {"micrographs",
          {{"scale", "1"},
           {"half-size", "true"},
           {"crop", "448"},
           {"width", "16"},
           {"validation", "17"},
           {"lanes", "4"},
           {"batch-size", "1"},
           {"threads", "1"},  // a rank: the bits are the same on any number of cores
           {"sync-bn", "true"},
           {"lr", "0.003"},
           {"ema", "0.98"},
           {"epochs", "150"},
           {"views", "8"},
           {"eval-every", "50epochs"},
           {"save-every", "50epochs"}}};
}

}  // namespace

void MnistOptions::declare(config::OptionSet& options) {
  using config::Effect;
  options
      .word("augment", "random changes of training images: mnist's are turned, moved and scaled a little", &augment,
            Effect::kIdentity)
      .none_at("none");
  options
      .word("loss", "of the classes: cross entropy, or the squared error of their probabilities", &loss,
            Effect::kIdentity)
      .none_at("cross-entropy");
}

// That of Paddle's course.
std::vector<train::Preset> MnistOptions::presets() const {
  return {{"paddle",
           {{"lanes", "4"},  // of 25 samples: a step of the course's 100 at any number of ranks
            {"batch-size", "25"},
            {"epochs", "5"},
            {"lr", "0.01"},
            {"optimizer", "sgd"},
            {"momentum", "0"},
            {"weight-decay", "0"},
            {"schedule", "constant"},
            {"warmup", "0"}}}};
}

void ImagenetOptions::declare(config::OptionSet& options) {
  options.word("arch", "the network", &arch, config::Effect::kIdentity);
  declare_size(options, "pixels a side of images (left out: 64 of drawn ones, 224 of --data, 32 of CIFAR's)", &size);
  images.declare(options);
  declare_alpha(options, "mixup", "blend training images and classes in pairs (MixUp), by Beta(ALPHA, ALPHA); 0: off",
                &mixup);
  declare_alpha(options, "cutmix", "paste parts of training images into others (CutMix); with --mixup one of both",
                &cutmix);
  options
      .number("label-smoothing", "SHARE", "of the loss, spread over all classes", &label_smoothing, 0, 0.999,
              config::Effect::kIdentity)
      .none_at("0");
}

// Those of Apex's examples/imagenet/main_amp.py, whose rate rises and drops by the step and by the epoch.
std::vector<train::Preset> ImagenetOptions::presets() const {
  return {{"apex",
           {{"epochs", "90"},
            {"lr", "0.1"},
            {"scale-lr", "linear=256"},
            {"optimizer", "sgd"},
            {"momentum", "0.9"},
            {"weight-decay", "0.0001"},
            {"schedule", "multistep"},
            {"milestones", "30epochs,60epochs,80epochs"},
            {"warmup", "5epochs"}}}};
}

int ImagenetOptions::side(const std::string& data) const {
  using datasets::Kind, datasets::Packed, datasets::usual_size;
  if (size) return *size;
  if (data.empty()) return 64;
  switch (datasets::kind_of(data)) {
    case Kind::kCifar10:
    case Kind::kCifar100:
      return usual_size(Packed::kCifar10);
    case Kind::kPacked:
      return usual_size(datasets::packed_kind(data));
    default:
      return usual_size(Packed::kImages);
  }
}

void ImagenetOptions::resolve(const std::string& data) {
  check_augment(images, data);
  size = side(data);
}

void ImagenetOptions::check() const {
  // Below, convolutions see nothing but padding, and oneDNN's gradients of such weights are not the same in every
  // process.
  if (size && *size < 32)
    throw ConfigError("--size ", *size, ": imagenet's networks halve images five times; expected 32 or more");
  constexpr int kAlexnetLeast = 63;
  if (arch == Arch::kAlexnet && size && *size < kAlexnetLeast)
    throw ConfigError("--size ", *size, ": nothing is left for alexnet's last pooling; expected ", kAlexnetLeast,
                      " or more");
  check_alpha("mixup", mixup);
  check_alpha("cutmix", cutmix);
}

// Those of https://github.com/milesial/Pytorch-UNet, and of its descendants that train on several GPUs.
std::vector<train::Preset> UNetOptions::presets() const {
  const std::vector<config::GivenOption> both = {{"epochs", "5"},     {"batch-size", "1"},  {"lr", "1e-05"},
                                                 {"scale", "0.5"},    {"validation", "10"}, {"dice", "milesial"},
                                                 {"augment", "none"}, {"warmup", "0"},      {"classes", "2"},
                                                 {"nproc", "1"}};  // and one lane: a step has one image
  train::Preset alone{"milesial", both}, together{"milesial-ddp", both};
  const std::vector<config::GivenOption> rmsprop = {
      {"optimizer", "rmsprop"}, {"momentum", "0.999"},      {"weight-decay", "1e-08"}, {"clip", "1"},
      {"schedule", "plateau"},  {"plateau-metric", "dice"}, {"patience", "5"},         {"eval-every", "5/epoch"}};
  alone.options.insert(alone.options.end(), rmsprop.begin(), rmsprop.end());
  const std::vector<config::GivenOption> adamw = {{"optimizer", "adamw"}, {"weight-decay", "1e-08"},
                                                  {"schedule", "cosine"}, {"schedule-unit", "epochs"},
                                                  {"lr-min", "1e-07"},    {"save-every", "5epochs"}};
  together.options.insert(together.options.end(), adamw.begin(), adamw.end());
  return {alone, together, micrographs()};
}

// Whoever says how large images or the network are has settings in mind, and a run that is resumed has them.
std::string UNetOptions::usual_preset(const std::string& data, const std::vector<config::GivenOption>& given) const {
  for (const char* own : {"size", "scale", "crop", "half-size", "width", "bilinear", "channels", "classes", "dice",
                          "global-batch-size", "parallel", "load", "resume"}) {
    if (train::value_of(given, own)) return "";
  }
  const train::Preset preset = micrographs();
  const int least = std::stoi(*train::value_of(preset.options, "crop"));
  return !data.empty() && are_micrographs(data, least) ? preset.name : "";
}

std::vector<config::Spelling> UNetOptions::spellings() const {
  return {{"-e", "epochs"},
          {"-b", "batch-size"},
          {"-l", "lr"},
          {"--learning-rate", "lr"},
          {"--learning_rate", "lr"},
          {"-f", "load"},
          {"-s", "scale"},
          {"-v", "validation"},
          {"-c", "classes"},
          {"--exp_name", "out", "runs/"},
          {"--exp-name", "out", "runs/"},
          {"--ddp_mode", "nproc", "auto", "", /*takes_value=*/false},
          {"--ddp-mode", "nproc", "auto", "", /*takes_value=*/false},
          {"--start_from", "first-epoch"},
          {"--start-from", "first-epoch"},
          {"--save_every", "save-every", "", "epochs"}};
}

void UNetOptions::declare(config::OptionSet& options) {
  declare_size(options, "pixels of images' shorter side (left out: 64 of drawn ones, 256 of --data)", &size);
  options
      .number("scale", "X", "images' size as a share of their own, instead of --size", &scale, 0.01, 1,
              config::Effect::kIdentity)
      .stands_for("size");
  options.number("crop", "PX",
                 "train on random squares of the images, of so many pixels a side (left out: whole images)", &crop, 16,
                 4096, config::Effect::kIdentity);
  options.number("channels", "N", "of images: 1 grey, 3 colours, 2 or 4 with alpha (left out: 1 or 3, as they are)",
                 &channels, 1, 4, config::Effect::kIdentity);
  options.number("classes", "N", "outputs (left out: the masks' values; 1: one output for masks of two)", &classes, 1,
                 4096, config::Effect::kIdentity);
  options
      .word("dice", "whose Dice: one an image and class (own), or over a whole batch (milesial's Pytorch-UNet)", &dice,
            config::Effect::kIdentity)
      .none_at("own");
  options
      .number("dice-weight", "X", "of the Dice loss, beside cross entropy (0: cross entropy alone)", &dice_weight, 0,
              1000, config::Effect::kTrajectory)
      .none_at("1");
  images.declare(options);
  options.flag("bilinear", "upsample by interpolation, in place of transposed convolutions", &bilinear,
               config::Effect::kIdentity);
  options.flag("half-size", "compute at half the images' size, and scale the scores back: a quarter of the time",
               &half_size, config::Effect::kIdentity);
  options
      .number("views", "1|2|4|8", "evaluate and predict by the mean over so many views of an image, flipped and turned",
              &views, 1, 8, config::Effect::kTrajectory)
      .none_at("1");
  options.number("width", "N", "channels of the first level; each further one has twice as many", &width, 1, 1024,
                 config::Effect::kIdentity);
}

int UNetOptions::side(const std::string& data) const {
  constexpr int kDrawn = 64, kLeast = 16;
  if (data.empty() && scale) return std::max(kLeast, static_cast<int>(kDrawn * *scale) / kLeast * kLeast);
  return size.value_or(data.empty() ? kDrawn : usual_size(datasets::Packed::kMasks));
}

void UNetOptions::resolve(const std::string& data) {
  check_augment(images, data);
  if (data.empty() && channels) throw ConfigError("--channels: goes with --data; drawn images have 3");
  if (data.empty() && crop) throw ConfigError("--crop: goes with --data; drawn images are small as they are");
  if (!scale) size = side(data);
}

void UNetOptions::check() const {
  if (size && scale) throw ConfigError("--size and --scale: give only one of them");
  if ((views & (views - 1)) != 0) throw ConfigError("--views ", views, ": expected 1, 2, 4 or 8");
  if (half_size && size && *size % 2 != 0) {
    throw ConfigError("--half-size: halves the sides of ", *size, " pixels; give an even --size, such as ", *size + 1);
  }
  if (crop && *crop % 16 != 0) {
    throw ConfigError("--crop ", *crop, ": U-Net halves images four times; give a multiple of 16, such as ",
                      std::max(16, *crop / 16 * 16));
  }
}

// A new recipe is one more line here.
train::RecipeDescriptions describe_recipes() {
  return {std::make_shared<MnistOptions>(), std::make_shared<UNetOptions>(), std::make_shared<ImagenetOptions>()};
}

}  // namespace lockstep::recipes
