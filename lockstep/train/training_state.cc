#include "lockstep/train/training_state.h"

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/optimizer_state.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/checkpoint/value_view.h"
#include "lockstep/train/optimizer_values.h"

namespace lockstep::train {
namespace {

using checkpoint::Dict;
using checkpoint::Value;
using checkpoint::ValueView;

// torch.amp.GradScaler's form, and what ours knows besides.
Dict scaler_dict(const amp::LossScaler& scaler) {
  if (!scaler.enabled()) return {};
  const auto& options = scaler.options();
  return {{"scale", scaler.scale()},
          {"growth_factor", options.growth_factor},
          {"backoff_factor", options.backoff_factor},
          {"growth_interval", options.growth_interval},
          {"_growth_tracker", scaler.state().good_steps},
          {"overflows_left", scaler.state().overflows_left}};
}

// The model's state dict with the averages in the weights' places; empty if there are none.
Dict average_dict(const torch::nn::Module& model, const std::vector<at::Tensor>& averages) {
  const auto parameters = model.named_parameters();
  Dict dict = checkpoint::state_dict(model);
  bool any = false;
  for (size_t i = 0; i < averages.size(); ++i) {
    if (!averages[i].defined()) continue;
    dict.set(parameters[i].key(), averages[i]);
    any = true;
  }
  return any ? dict : Dict();
}

void load_average(const ValueView& saved, const std::string& file, const torch::nn::Module& model,
                  optim::AnyOptimizer& optimizer) {
  std::vector<at::Tensor> averages;
  for (const auto& item : model.named_parameters()) {
    const Value* value = saved.dict().find(item.key());
    const auto* tensor = value == nullptr ? nullptr : value->get_if<at::Tensor>();
    if (tensor == nullptr) throw DataError(file, ": ema: no tensor of the name ", item.key());
    averages.push_back(*tensor);
  }
  optimizer.load_averages(averages);
}

checkpoint::List list_of(const std::vector<int64_t>& numbers) {
  checkpoint::List list;
  for (const int64_t number : numbers) list.push_back(number);
  return list;
}

std::vector<int64_t> shape_in(const ValueView& meta) {
  std::vector<int64_t> shape;
  if (const auto list = meta.find("sample_shape")) {
    for (const auto& item : list->items()) shape.push_back(item.integer());
  }
  return shape;
}

std::string arch_in(const ValueView& meta) {
  const auto arch = meta.find("arch");
  return arch ? arch->text() : "";
}

// {3, 64, 64} -> "3×64×64"
std::string text_of(const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape) text += cat(text.empty() ? "" : "×", size);
  return text;
}

}  // namespace

Value to_checkpoint(const TrainingState& state, const torch::nn::Module& model, const optim::AnyOptimizer& optimizer,
                    const amp::LossScaler& scaler) {
  const Origin& origin = state.origin;
  Dict root{{"model", checkpoint::state_dict(model)},
            {"optimizer", checkpoint::optimizer_to_dict(to_values(optimizer.state_dict()))},
            {"amp", Dict{{"precision", origin.precision}, {"loss_scaler0", scaler_dict(scaler)}}},
            {"scheduler", Dict{{"last_epoch", state.step}, {"_last_lr", checkpoint::List{optimizer.lr()}}}},
            {"sampler", Dict{{"epoch", state.step / state.steps_per_epoch},
                             {"step", state.step % state.steps_per_epoch},
                             {"lanes", origin.lanes},
                             {"batch_size", origin.batch_size},
                             {"dataset_size", origin.train_samples}}},
            {"rng", Dict{{"seed", origin.seed}}},
            {"meta", Dict{{"format", "lockstep"},
                          {"version", 1},
                          {"recipe", origin.recipe},
                          {"arch", origin.arch},
                          {"sample_shape", list_of(origin.sample_shape)},
                          {"optimizer", std::string(optimizer.name())},
                          {"step", state.step},
                          {"steps_per_epoch", state.steps_per_epoch},
                          {"best", state.best},
                          {"threads", origin.threads},
                          {"channels_last", origin.channels_last},
                          {"ema", origin.ema}}}};
  if (Dict ema = average_dict(model, optimizer.averages()); !ema.empty()) root.set("ema", std::move(ema));
  return root;
}

TrainingState read_state(const Value& value, const std::string& file) {
  const auto* root = value.get_if<Dict>();
  if (root == nullptr || !root->contains("meta") || !root->contains("sampler")) {
    throw DataError(file,
                    ": no checkpoint of a run (it has no \"meta\" and \"sampler\"); give it to --load for its weights");
  }
  const ValueView view(value, file);
  const ValueView meta = view["meta"], sampler = view["sampler"];
  const bool averages = meta.dict().contains("ema");  // older ones don't say
  return {.step = meta["step"].integer(),
          .steps_per_epoch = meta["steps_per_epoch"].integer(),
          .best = meta["best"].number(),
          .origin = {.recipe = meta["recipe"].text(),
                     .arch = arch_in(meta),
                     .sample_shape = shape_in(meta),
                     .lanes = static_cast<int>(sampler["lanes"].integer()),
                     .threads = static_cast<int>(meta["threads"].integer()),
                     .batch_size = sampler["batch_size"].integer(),
                     .train_samples = sampler["dataset_size"].integer(),
                     .seed = view["rng"]["seed"].integer(),
                     .precision = view["amp"]["precision"].text(),
                     .channels_last = meta["channels_last"].boolean(),
                     .ema = averages ? meta["ema"].number() : 0}};
}

void restore_model(const Value& value, const std::string& file, torch::nn::Module& model) {
  checkpoint::load_state_dict(model, ValueView(value, file)["model"].dict(), {.file = file});
}

void restore(const Value& value, const std::string& file, const torch::nn::Module& model,
             optim::AnyOptimizer& optimizer, amp::LossScaler& scaler) {
  const ValueView view(value, file);
  const std::string& kind = view["meta"]["optimizer"].text();
  if (kind != optimizer.name()) {
    throw ConfigError(file, ": its optimizer is ", kind, ", the run's ", std::string(optimizer.name()),
                      "; use --optimizer ", kind);
  }
  std::vector<std::string> names;
  for (const auto& item : model.named_parameters()) names.push_back(item.key());
  optimizer.load_state_dict(from_values(checkpoint::optimizer_from_dict(view["optimizer"]), file), names);
  if (view.dict().contains("ema")) load_average(view["ema"], file, model, optimizer);
  const ValueView saved = view["amp"]["loss_scaler0"];
  if (!scaler.enabled() || saved.dict().empty()) return;
  scaler.load({.scale = saved["scale"].number(),
               .good_steps = static_cast<int>(saved["_growth_tracker"].integer()),
               .overflows_left = static_cast<int>(saved["overflows_left"].integer())});
}

void check_origin(const Origin& run, const Origin& checkpoint, const std::string& file) {
  const auto check = [&file](const char* what, const auto& now, const auto& then, const char* hint) {
    if (now == then) return;
    throw ConfigError(file, ": it was trained with ", what, ' ', then, ", this run has ", now, "; ", hint);
  };
  check("recipe", run.recipe, checkpoint.recipe, "resume it with its own recipe");
  check("arch", run.arch, checkpoint.arch, "use the same --arch, or start a new run");
  if (!checkpoint.sample_shape.empty()) {
    check("samples of", text_of(run.sample_shape), text_of(checkpoint.sample_shape),
          "use the same --size, or start a new run with --load");
  }
  check("lanes", run.lanes, checkpoint.lanes, "leave --lanes out, or start a new run with --load");
  check("batch size", run.batch_size, checkpoint.batch_size,
        "use the same --batch-size, or start a new run with --load");
  check("training samples", run.train_samples, checkpoint.train_samples, "give the same --data and --validation");
  check("seed", run.seed, checkpoint.seed, "use the same --seed, or start a new run with --load");
  check("precision", run.precision, checkpoint.precision,
        "use the same --amp and --comm-dtype, or start a new run with --load");
  check("channels_last", run.channels_last, checkpoint.channels_last, "use the same --channels-last");
  check("ema", run.ema, checkpoint.ema, "use the same --ema, or start a new run with --load");
}

}  // namespace lockstep::train
