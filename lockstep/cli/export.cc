#include <ATen/ATen.h>

#include <filesystem>
#include <optional>

#include "lockstep/base/error.h"
#include "lockstep/base/log.h"
#include "lockstep/checkpoint/formats/paddle_reader.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/load_model.h"
#include "lockstep/cli/commands.h"
#include "lockstep/cli/evaluated_model.h"
#include "lockstep/cli/network_sizes.h"
#include "lockstep/exporting/export_module.h"
#include "lockstep/train/continuation.h"
#include "lockstep/train/options/export_command.h"
#include "lockstep/train/training_state.h"

namespace lockstep::cli {
namespace {

constexpr int64_t kDigitSide = 28;  // pixels, of the recipe without a size
constexpr const char* kDrawn = "";  // data made on the spot, in resolve()

const std::string& trained_on(const train::Origin& origin) {
  return train::of(origin.data.fingerprints, train::Part::kTrain);
}
bool was_drawn(const train::Origin& origin) { return trained_on(origin).find(", seed ") != std::string::npos; }

// Neither the file that is read nor a run's others are overwritten.
void refuse_checkpoints(const std::string& out, const std::string& file) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::equivalent(file, out, error)) {
    throw ConfigError("export: ", out, ": the checkpoint itself; choose another name");
  }
  const fs::path folder = fs::absolute(out).parent_path();
  if (folder.filename() == "checkpoints" && fs::equivalent(folder, fs::absolute(file).parent_path(), error)) {
    throw ConfigError("export: ", out, ": a run keeps its checkpoints there; choose another folder");
  }
}

// What is done to images before the network sees them; empty where the recipe can't tell without one.
std::string preprocessing(const train::Recipe& recipe, const std::optional<train::Origin>& origin,
                          const NetworkSizes& sizes, const std::string& run_data) {
  if (recipe.makes_masks()) return "values from 0 to 1";
  train::InputRequest request{.channels = sizes.channels, .data = run_data};
  if (origin) request.fingerprint = trained_on(*origin), request.drawn = was_drawn(*origin);
  try {
    const train::OpenInput open = recipe.input_opener(request);
    return open ? open("image")->transforms() : "";
  } catch (const Error&) {  // packed data that are gone
    return "";
  }
}

std::vector<std::pair<std::string, std::string>> metadata_of(const train::Recipe& recipe,
                                                             const std::optional<train::Origin>& origin,
                                                             const std::string& images) {
  std::vector<std::pair<std::string, std::string>> pairs = {{"recipe", recipe.name()}};
  if (!images.empty()) pairs.emplace_back("preprocessing", images);
  if (origin && !origin->data.classes.names.empty()) {
    pairs.emplace_back("classes", nlohmann::json(origin->data.classes.names).dump());
  }
  return pairs;
}

// Of a run's own size, unless the line says another one.
at::Tensor example_of(const train::ExportCommand& command, const std::optional<train::Origin>& origin,
                      const NetworkSizes& sizes) {
  int64_t height = command.image_size().value_or(kDigitSide), width = height;
  if (origin && origin->sample_shape.size() == 3 && !command.gives_size()) {
    height = origin->sample_shape[1], width = origin->sample_shape[2];
  }
  return at::zeros({command.options().batch.value_or(1), sizes.channels, height, width});
}

std::string shape_of(const at::Tensor& example, const ExportOptions& options) {
  const auto size = [&](int64_t dim, bool any, const char* name) { return any ? name : cat(example.size(dim)); };
  return cat('[', size(0, options.any_batch, "batch"), ", ", example.size(1), ", ", size(2, options.any_size, "height"),
             ", ", size(3, options.any_size, "width"), ']');
}

}  // namespace

int export_network(const Program& program, const Arguments& args, const Recipes& recipes) {
  train::ExportCommand command(program.name, {recipes.begin(), recipes.end()});
  if (const auto help = command.read(args)) return print(*help), 0;
  const train::ExportCommandOptions& options = command.options();
  const auto recipe = std::dynamic_pointer_cast<train::Recipe>(command.recipe());
  const Logger log = Logger::from_environment("");
  const train::NamedCheckpoint named = train::find_checkpoint("--load", options.weights.load);
  for (const auto& warning : named.warnings) log.warning(warning);
  const std::string& file = named.file;
  refuse_checkpoints(options.out, file);
  const checkpoint::Value root =
      checkpoint::open_checkpoint(file, {.ignore_unknown = options.weights.ignore_unknown, .checks_on_the_way = true});
  const auto origin = train::find_origin(root, file);
  command.take_recorded(origin ? origin->options : config::Record(), origin && was_drawn(*origin) ? kDrawn : file);
  const ModelFile weights{root, file, options.weights, checkpoint::is_paddle_file(file)};
  const checkpoint::Dict state = checkpoint::choose_state(root, weights.options()).state;
  const NetworkSizes sizes = sizes_in(state, *recipe, file);
  const train::Model model = make_network(*recipe, sizes);
  const auto loaded = checkpoint::load_model(*model.module, root, weights.options());
  if (const std::string told = loaded.report.text(); !told.empty()) log.info(file, ": took ", told);
  const bool to_onnx = options.format == train::ExportTo::kOnnx;
  const ExportOptions how{
      .format = to_onnx ? ExportFormat::kOnnx : ExportFormat::kTorchScript,
      .any_batch = !options.batch,
      .any_size = options.dynamic_size,
      .fold_batch_norm = options.fold_batch_norm,
      .metadata = metadata_of(*recipe, origin, preprocessing(*recipe, origin, sizes, options.run_data))};
  const at::Tensor example = example_of(command, origin, sizes);
  export_module(
      *model.module, [&](const at::Tensor& images) { return model.forward(data::Batch::of(images, {})); }, example,
      options.out, how);
  print(
      cat(options.out, ": ", to_onnx ? "ONNX" : "TorchScript", " of ", file, ", input ", shape_of(example, how), '\n'));
  return 0;
}

}  // namespace lockstep::cli
