#include "lockstep/train/options/predict_command.h"

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/config/inputs.h"
#include "lockstep/config/spellings.h"
#include "lockstep/config/tokenizer.h"
#include "lockstep/config/values.h"
#include "lockstep/train/options/checkpoint_subject.h"

namespace lockstep::train {
namespace {

std::string help(const std::string& program, const std::vector<config::OptionShape>& shapes,
                 const std::vector<std::string>& names) {
  return cat("Usage: ", program, " predict RUN_DIR -i IN [-o OUT] [options]\n       ", program,
             " predict RECIPE --load FILE -i IN [-o OUT] [options]\n\nWhat a network makes of images: of IN, a file, ",
             "all images below a folder, or - for standard input. A network for classes prints a\ntable of the "
             "likeliest; one for masks writes ",
             "NAME_mask.png, of each pixel's class, and NAME_overlay.png, the\nimage with its mask in colours.\n\n",
             "RECIPE: ", config::either(names),
             ". Its own options are the checkpoint's, where the line says nothing.\nOf a run's folder the newest "
             "checkpoint is taken.\n",
             config::describe(shapes), "\nExamples:\n  ", program, " predict runs/imagenet-1 -i photos -o classes.csv ",
             "--format csv\n  ", program, " predict unet --load runs/unet-1/checkpoints/best.pt -i cells -o masks\n");
}

// Pytorch-UNet's names.
const std::vector<config::Spelling> kSpellings = {
    {"-i", "input"}, {"-o", "output"}, {"-m", "load"}, {"--model", "load"}};

}  // namespace

void PredictOptions::declare(config::OptionSet& options) {
  using enum config::Effect;
  options.section("Options");
  options.subject("recipe", &recipe, kNone);
  weights.declare(options, "the checkpoint");
  options.text("input", "IN", "-i, an image, a folder of images, or - for standard input", &input, kNone);
  options.text("output", "OUT",
               "-o, a file for the table of classes, a folder for masks (left out: standard output, "
               "the folder predicted)",
               &output, kNone);
  options.number("top", "N", "classes of each image, the likeliest first", &top, 1, 1000, kNone);
  options.word("format", "of the table of classes", &format, kNone);
  options.number("batch-size", "N", "images at a time", &batch_size, 1, 1 << 16, kNone);
  options.number("threads", "N", "threads that compute (left out: one for each core)", &threads, 1, 1024, kNone);
  precision.declare(options, kNone);
  device.declare(options, kNone);
}

PredictCommand::PredictCommand(std::string program, RecipeDescriptions recipes)
    : program_(std::move(program)), choice_(std::move(recipes)) {
  options_.declare(rows_);
}

std::optional<std::string> PredictCommand::read(const std::vector<std::string>& args) {
  const auto shapes = choice_.shapes(rows_);
  auto spellings = choice_.spellings(choice_.named_in(args));
  spellings.insert(spellings.end(), kSpellings.begin(), kSpellings.end());
  const config::Given line =
      tokenize(shapes, config::respell(args, spellings, shapes), config::Rest::kOptions, choice_.names());
  if (line.help) return help(program_, shapes, choice_.names());
  rows_.apply_as_given(line.options);
  const auto found =
      CheckpointSubject(program_, "predict", choice_).find(line, options_.weights.load, rows_, own_rows_);
  options_.weights.load = found.load;
  options_.recipe = found.recipe;
  recipe_ = found.description;
  if (found.run.recipe == found.recipe) options_.run_data = value_of(found.run.options, "data").value_or("");
  if (options_.input.empty()) {
    throw ConfigError("predict: -i IN is missing: which image, or folder of images, is it to look at?");
  }
  if (options_.input != "-") config::require_there("--input", options_.input);
  recipe_->check();
  return std::nullopt;
}

std::vector<std::string> PredictCommand::arguments() const {
  std::vector<std::string> words = {"predict"};
  for (const config::OptionSet* rows : {&rows_, &own_rows_}) {
    for (auto& word : rows->arguments()) words.push_back(std::move(word));
  }
  return words;
}

bool PredictCommand::turns_images() const {
  const config::Option* row = own_rows_.find("exif");
  return row == nullptr || row->get() != "off";
}

void PredictCommand::take_recorded(const config::Record& record, const std::string& data) {
  take_record(record, own_rows_);
  recipe_->resolve(data);
  recipe_->check();
}

}  // namespace lockstep::train
