#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "lockstep/amp/autocast.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/formats/paddle_reader.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/load_model.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/evaluated_model.h"
#include "lockstep/cli/network_sizes.h"
#include "lockstep/cli/ranks.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/nn/eval_mode.h"
#include "lockstep/predict/class_output.h"
#include "lockstep/predict/inputs.h"
#include "lockstep/predict/mask_output.h"
#include "lockstep/predict/masks.h"
#include "lockstep/predict/standard_input.h"
#include "lockstep/train/continuation.h"
#include "lockstep/train/memory_format.h"
#include "lockstep/train/options/predict_command.h"
#include "lockstep/train/plan.h"
#include "lockstep/train/setup.h"
#include "lockstep/train/training_state.h"
#include "lockstep/world/world.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

// What is done with the scores of an image.
using Take = std::function<void(size_t number, const at::Tensor& scores)>;

// The images go through the network as many at a time as have one shape.
class Batches {
 public:
  using Forward = std::function<at::Tensor(const data::Batch&)>;

  Batches(size_t most, Forward forward, Take take)
      : most_(most), forward_(std::move(forward)), take_(std::move(take)) {}

  void add(size_t number, const at::Tensor& image) {
    if (!images_.empty() && images_[0].sizes() != image.sizes()) flush();
    numbers_.push_back(number);
    images_.push_back(image);
    if (images_.size() == most_) flush();
  }
  void flush() {
    if (images_.empty()) return;
    const at::Tensor scores = forward_(data::Batch::of(at::cat(images_), {})).to(at::kCPU);
    for (size_t i = 0; i < numbers_.size(); ++i) take_(numbers_[i], scores[static_cast<int64_t>(i)]);
    images_.clear();
    numbers_.clear();
  }

 private:
  size_t most_;
  Forward forward_;
  Take take_;
  std::vector<size_t> numbers_;
  std::vector<at::Tensor> images_;
};

int threads_of(const train::PredictOptions& options) { return options.threads > 0 ? options.threads : usable_cores(); }

const std::string& trained_on(const train::Origin& origin) {
  return train::of(origin.data.fingerprints, train::Part::kTrain);
}

// Data that are made on the spot are told by their seed.
bool was_drawn(const train::Origin& origin) { return trained_on(origin).find(", seed ") != std::string::npos; }

// The images' own folder is no place for masks: there may be masks of these names already, drawn by people.
void refuse_own_folder(const std::string& input, const std::string& output) {
  std::error_code error;
  const fs::path own = fs::is_directory(input, error) ? fs::path(input) : fs::absolute(input).parent_path();
  if (fs::equivalent(own, output, error)) {
    throw ConfigError("--output ", output, ": the images themselves lie there; choose another folder");
  }
}

// The images to look at: files, or what a pipe gave.
struct Images {
  std::optional<predict::StandardInput> piped;
  std::vector<std::string> files;
  size_t passed_over = 0;  // that can't even be opened

  // What people call them.
  std::string shown(size_t number) const { return piped ? predict::StandardInput::kName : files[number]; }
  std::string named(const std::string& text) const { return piped ? piped->named(text) : text; }
  std::vector<std::string> output_names(const std::string& in) const {
    return piped ? std::vector<std::string>{"stdin"} : predict::output_names(in, files);
  }
};

// Warns of what it passes over. `masks_folder` is empty where no masks are made.
Images images_of(const std::string& in, const std::string& masks_folder, const Logger& log) {
  Images images;
  if (in == "-") {
    images.files = {images.piped.emplace().path()};
    return images;
  }
  if (!masks_folder.empty()) refuse_own_folder(in, masks_folder);
  images.files = predict::input_files(in, masks_folder, [&](const std::string& line) {
    log.warning(line);
    ++images.passed_over;
  });
  return images;
}

// Opens a file for the network.
using Read = std::function<at::Tensor(const std::string& file)>;

// Calls take(number, scores) for each file, with what the network computes of it. Returns the number of those that
// can't be read, of which it warns; one that is alone is an error.
size_t look_at(const std::vector<std::string>& files, const Read& read, const train::Model& model,
               const ModelPlace& place, size_t batch_size, const Take& take, const Logger& log) {
  const nn::EvalMode eval_mode({model.module.get()});
  const c10::AutoGradMode no_grad(false);
  Batches batches(
      batch_size,
      [&](data::Batch batch) {
        batch.data() = batch.data().to(place.device).contiguous(train::memory_format(place.channels_last));
        const amp::AutocastScope autocast(place.amp, place.device.type());
        return model.forward(batch);
      },
      take);
  size_t unread = 0;
  for (size_t number = 0; number < files.size(); ++number) {
    at::Tensor image;
    try {
      image = read(files[number]);
    } catch (const DataError& error) {
      if (files.size() == 1) throw;
      log.warning(error.what());
      ++unread;
      continue;
    } catch (...) {
      batches.flush();  // those before it are told
      throw;
    }
    batches.add(number, image);
  }
  batches.flush();
  return unread;
}

}  // namespace

int predict(const Program& program, const Arguments& args, const Recipes& recipes) {
  train::PredictCommand command(program.name, {recipes.begin(), recipes.end()});
  if (const auto help = command.read(args)) return print(*help), 0;
  const train::PredictOptions& options = command.options();
  const auto recipe = std::dynamic_pointer_cast<train::Recipe>(command.recipe());
  if (!recipe->takes_files()) {
    throw ConfigError("predict: the recipe ", recipe->name(), " takes no files; ", program.name, " eval ",
                      recipe->name(), " --load ", options.weights.load, " says how good its network is");
  }
  const bool makes_masks = recipe->makes_masks();
  const std::string masks_folder = !makes_masks ? "" : options.output.empty() ? "predicted" : options.output;
  const Logger log = Logger::from_environment("");
  const Images images = images_of(options.input, masks_folder, log);
  const std::vector<std::string>& files = images.files;
  train::require_gpu(options.device);
  train::let_gpus_repeat(options.device, /*deterministic=*/true);
  const auto world = init();
  if (world->size() > 1) throw ConfigError("predict: it is one process; start it without a launcher");
  const c10::Device device = open_own_device(options.device, *world, log);
  const train::NamedCheckpoint named = train::find_checkpoint("--load", options.weights.load);
  for (const auto& warning : named.warnings) log.warning(warning);
  const std::string& file = named.file;
  if (!makes_masks) {
    std::vector<std::string> read = files;
    read.push_back(file);
    predict::refuse_overwriting(options.output, read);
  }
  const checkpoint::Value root =
      checkpoint::open_checkpoint(file, {.ignore_unknown = options.weights.ignore_unknown, .checks_on_the_way = true});
  const bool is_paddle = checkpoint::is_paddle_file(file);
  const auto origin = train::find_origin(root, file);
  command.take_recorded(origin ? origin->options : config::Record(), origin && was_drawn(*origin) ? "" : files.front());
  at::set_num_threads(threads_of(options));
  const bool channels_last = train::takes_channels_last(train::ChannelsLast::kAuto, recipe->defaults());
  const ModelFile weights{root, file, options.weights, is_paddle};
  const checkpoint::Dict state = checkpoint::choose_state(root, weights.options()).state;
  const NetworkSizes sizes = sizes_in(state, *recipe, file);
  if (makes_masks && sizes.classes > predict::kMostClasses) {
    throw ConfigError(file, ": masks of ", sizes.classes, " classes; at most ", predict::kMostClasses, " are written");
  }
  const train::OpenInput open_input = recipe->input_opener({.channels = sizes.channels,
                                                            .fingerprint = origin ? trained_on(*origin) : "",
                                                            .data = options.run_data,
                                                            .drawn = origin && was_drawn(*origin),
                                                            .channels_last = channels_last});
  const auto model = make_network(*recipe, sizes);
  const ModelPlace place{device, channels_last,
                         policy_of(train::amp_of_evaluation(options.precision, origin, options.device.kind, *world))};
  load_for_evaluation(model, weights, place, *world, log);

  predict::ClassOutput table({.top = options.top,
                              .format = options.format,
                              .class_names = origin ? origin->data.classes.names : std::vector<std::string>(),
                              .file = options.output,
                              .print = print});
  std::optional<predict::MaskOutput> masks;
  if (makes_masks) masks.emplace(masks_folder, images.output_names(options.input), command.turns_images());
  const auto read = [&](const std::string& path) {
    try {
      return data::read_batch(*open_input(path), std::array<int64_t, 1>{0}).data();
    } catch (const DataError& error) {
      throw DataError(images.named(error.what()));
    }
  };
  const auto take = [&](size_t number, const at::Tensor& scores) {
    if (!masks) return table.add(images.shown(number), scores);
    print(images.named(masks->add(number, files[number], scores)));
  };
  const size_t unread =
      images.passed_over + look_at(files, read, model, place, static_cast<size_t>(options.batch_size), take, log);
  if (unread > 0)
    throw DataError(unread, " of ", images.passed_over + files.size(),
                    " images could not be read; the warnings name them");
  return 0;
}

}  // namespace lockstep::cli
