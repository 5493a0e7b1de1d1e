#include "lockstep/train/options/export_command.h"

#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/config/inputs.h"
#include "lockstep/config/tokenizer.h"
#include "lockstep/config/values.h"
#include "lockstep/train/options/checkpoint_subject.h"

namespace lockstep::train {
namespace {

std::string help(const std::string& program, const std::vector<config::OptionShape>& shapes,
                 const std::vector<std::string>& names) {
  return cat("Usage: ", program, " export RUN_DIR OUT [options]\n       ", program,
             " export RECIPE --load FILE OUT [options]\n\nWrites the network as OUT for other programs: .onnx for ",
             "ONNX Runtime and others, .pt or .ts as TorchScript\nfor PyTorch and libtorch. It is the network of an ",
             "evaluation, in float32, with the weights' average where the\ncheckpoint has one.\n\nRECIPE: ",
             config::either(names),
             ". Its own options are the checkpoint's, where the line says nothing.\nOf a run's folder the newest "
             "checkpoint is taken.\n",
             config::describe(shapes), "\nExamples:\n  ", program,
             " export runs/imagenet-1 resnet18.onnx --fold-batch-norm\n  ", program,
             " export imagenet --arch alexnet --load alexnet.pth alexnet.onnx --batch 1\n");
}

}  // namespace

void ExportCommandOptions::declare(config::OptionSet& options) {
  using enum config::Effect;
  options.section("Options");
  options.subject("recipe", &recipe, kNone);
  options.subject("out", &out, kNone);
  weights.declare(options, "the checkpoint");
  options.word("format", "of OUT (left out: as its name ends)", &format, kNone);
  options.number("batch", "N", "images in each batch (left out: any number)", &batch, 1, 1 << 16, kNone);
  options.flag("dynamic-size", "for images of other sizes too; unet's are multiples of 16", &dynamic_size, kNone);
  options.flag("fold-batch-norm", "BatchNorm becomes a part of the convolution before it", &fold_batch_norm, kNone);
}

ExportCommand::ExportCommand(std::string program, RecipeDescriptions recipes)
    : program_(std::move(program)), choice_(std::move(recipes)) {
  options_.declare(rows_);
}

std::optional<std::string> ExportCommand::read(const std::vector<std::string>& args) {
  const auto shapes = choice_.shapes(rows_);
  config::Given line = tokenize(shapes, args, config::Rest::kOptions, choice_.names());
  if (line.help) return help(program_, shapes, choice_.names());
  rows_.apply_as_given(line.options);
  if (line.words.empty() || line.words.size() > 2 || (line.words.size() == 1 && options_.weights.load.empty())) {
    throw ConfigError("export: expected two words, RUN_DIR or RECIPE, and OUT, the file to write; ", program_,
                      " export --help says more");
  }
  options_.out = line.words.back();
  line.words.pop_back();
  const auto found = CheckpointSubject(program_, "export", choice_).find(line, options_.weights.load, rows_, own_rows_);
  options_.weights.load = found.load;
  options_.recipe = found.recipe;
  recipe_ = found.description;
  if (found.run.recipe == found.recipe) options_.run_data = value_of(found.run.options, "data").value_or("");
  const bool is_onnx = options_.out.ends_with(".onnx");
  if (!options_.format) {
    if (!is_onnx && !options_.out.ends_with(".pt") && !options_.out.ends_with(".ts")) {
      throw ConfigError("export: ", options_.out,
                        ": expected a name that ends in .onnx, or in .pt or .ts for TorchScript");
    }
    options_.format = is_onnx ? ExportTo::kOnnx : ExportTo::kTorchScript;
  }
  recipe_->check();
  return std::nullopt;
}

std::vector<std::string> ExportCommand::arguments() const {
  std::vector<std::string> words = {"export"};
  for (const config::OptionSet* rows : {&rows_, &own_rows_}) {
    for (auto& word : rows->arguments()) words.push_back(std::move(word));
  }
  return words;
}

std::optional<int64_t> ExportCommand::image_size() const {
  const config::Option* row = own_rows_.find("size");
  const auto value = row == nullptr ? std::nullopt : row->get();
  return value && !value->empty() ? std::optional<int64_t>(std::stoll(*value)) : std::nullopt;
}

bool ExportCommand::gives_size() const {
  const config::Option* row = own_rows_.find("size");
  return row != nullptr && row->given;
}

void ExportCommand::take_recorded(const config::Record& record, const std::string& data) {
  take_record(record, own_rows_);
  recipe_->resolve(data);
  recipe_->check();
}

}  // namespace lockstep::train
