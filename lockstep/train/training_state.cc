#include "lockstep/train/training_state.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"
#include "lockstep/checkpoint/formats/value_view.h"
#include "lockstep/checkpoint/optimizer_state.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/loop/optimizer_values.h"
#include "lockstep/loop/scaler_values.h"
#include "lockstep/loop/skipped_values.h"
#include "lockstep/train/optimizer_parts.h"
#include "lockstep/train/weights/input_channels.h"

namespace lockstep::train {
namespace {

using checkpoint::Dict;
using checkpoint::Value;
using checkpoint::ValueView;

Dict optimizer_dict(const optim::OptimizerState& state, const Scheduler& scheduler) {
  checkpoint::OptimizerState values = loop::to_values(state);
  for (auto& group : values.groups) add_group_rates(scheduler, group.options);
  return checkpoint::optimizer_to_dict(values);
}

Dict dict_of(const checkpoint::NamedTensors& tensors) {
  Dict dict;
  for (const auto& [name, tensor] : tensors) dict.set(name, tensor);
  return dict;
}

// The names of the optimizer's parameters in its own order, which parameter groups may change.
std::vector<std::string> names_in(const optim::AnyOptimizer& optimizer, const torch::nn::Module& model) {
  std::unordered_map<const c10::TensorImpl*, std::string> name_of;
  for (const auto& item : model.named_parameters()) name_of.emplace(item.value().unsafeGetTensorImpl(), item.key());
  std::vector<std::string> names;
  for (const at::Tensor& parameter : optimizer.all_parameters()) {
    names.push_back(name_of.at(parameter.unsafeGetTensorImpl()));
  }
  return names;
}

void load_average(const ValueView& saved, const std::string& file, const torch::nn::Module& model,
                  optim::AnyOptimizer& optimizer) {
  std::vector<at::Tensor> averages;
  for (const std::string& name : names_in(optimizer, model)) {
    const Value* value = saved.dict().find(name);
    const auto* tensor = value == nullptr ? nullptr : value->get_if<at::Tensor>();
    if (tensor == nullptr) throw DataError(file, ": ema: no tensor of the name ", name);
    checkpoint::bring_into_memory(*tensor);
    averages.push_back(*tensor);
  }
  optimizer.load_averages(averages);
}

checkpoint::List list_of(const std::vector<int64_t>& numbers) {
  checkpoint::List list;
  for (const int64_t number : numbers) list.push_back(number);
  return list;
}

checkpoint::List list_of(const std::vector<std::string>& texts) {
  checkpoint::List list;
  for (const std::string& text : texts) list.push_back(text);
  return list;
}

Dict dict_of(const config::Record& record) {
  Dict dict;
  for (const auto& [name, value] : record) dict.set(name, value);
  return dict;
}

std::vector<int64_t> numbers_of(const ValueView& list) {
  std::vector<int64_t> numbers;
  for (const auto& item : list.items()) numbers.push_back(item.integer());
  return numbers;
}

config::Record record_in(const ValueView& options) {
  config::Record record;
  for (const auto& entry : options.dict()) {
    const std::string name = checkpoint::key_text(entry.key);
    record.push_back({name, options[name].text()});
  }
  return record;
}

// Older versions wrote no --validation where nothing was held out, and a share where files were.
void say_held_out(config::Record& options) {
  const auto named = [&](const char* name) {
    return std::find_if(options.begin(), options.end(), [name](const auto& option) { return option.name == name; });
  };
  const auto files = named("hold-out"), found = named("validation");
  if (files != options.end() && !files->value.empty()) {
    if (found != options.end()) found->value.clear();  // which they recorded as well
    return;
  }
  if (found == options.end()) {
    options.push_back({"validation", "0"});
  } else if (found->value.empty()) {
    found->value = "0";
  }
}

// What is not there was written by a version that did not record it.
DataFacts data_in(const ValueView& meta) {
  DataFacts facts;
  const auto take = [&](Part part, const char* key) {
    if (meta.find(key)) of(facts.fingerprints, part) = meta[key].text();
  };
  take(Part::kTrain, "fingerprint");
  take(Part::kValidation, "validation_fingerprint");
  take(Part::kTest, "test_fingerprint");
  if (meta.find("classes")) facts.classes.count = meta["classes"].integer();
  if (!meta.find("class_names")) return facts;
  for (const auto& name : meta["class_names"].items()) facts.classes.names.push_back(name.text());
  return facts;
}

Dict meta_of(const TrainingState& state, const optim::AnyOptimizer& optimizer) {
  const Origin& origin = state.origin;
  Dict meta{{"format", "lockstep"},
            {"version", 2},
            {"versions", origin.versions},
            {"options", dict_of(origin.options)},
            {"sample_shape", list_of(origin.sample_shape)},
            {"fingerprint", of(origin.data.fingerprints, Part::kTrain)},
            {"validation_fingerprint", of(origin.data.fingerprints, Part::kValidation)},
            {"test_fingerprint", of(origin.data.fingerprints, Part::kTest)},
            {"classes", origin.data.classes.count},
            {"class_names", list_of(origin.data.classes.names)},
            {"optimizer", std::string(optimizer.name())},
            {"step", state.step},
            {"steps_per_epoch", state.steps_per_epoch},
            {"best", state.best},
            {"best_by", state.best_by},
            {"best_at_interval", state.best_at_interval},
            {"since_best", state.since_best},
            {"is_best", state.is_best},
            {"skipped", loop::skipped_to_list(state.skipped)}};
  if (state.unevaluated) meta.set("unevaluated", true);
  return meta;
}

}  // namespace

checkpoint::NamedTensors state_with(const torch::nn::Module& model, const optim::AnyOptimizer& optimizer,
                                    const std::vector<at::Tensor>& values) {
  std::unordered_map<const c10::TensorImpl*, at::Tensor> value_of;
  const auto parameters = values.empty() ? std::vector<at::Tensor>() : optimizer.all_parameters();
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].defined()) value_of.emplace(parameters[i].unsafeGetTensorImpl(), values[i]);
  }
  std::map<std::string, at::Tensor> by_name;
  for (const auto& item : model.named_parameters()) {
    const auto found = value_of.find(item.value().unsafeGetTensorImpl());
    if (found != value_of.end()) by_name.emplace(item.key(), found->second);
  }
  auto state = checkpoint::named_state(model);
  for (auto& [name, tensor] : state) {
    if (const auto found = by_name.find(name); found != by_name.end()) tensor = found->second;
  }
  return state;
}

Value to_checkpoint(const TrainingState& state, const torch::nn::Module& model, const optim::AnyOptimizer& optimizer,
                    const amp::LossScaler& scaler) {
  const OptimizerParts parts{optimizer.state_dict(), optimizer.masters(), optimizer.averages()};
  return to_checkpoint(state, model, optimizer, parts, scaler);
}

Value to_checkpoint(const TrainingState& state, const torch::nn::Module& model, const optim::AnyOptimizer& optimizer,
                    const OptimizerParts& parts, const amp::LossScaler& scaler) {
  const Origin& origin = state.origin;
  Dict root{{"model", dict_of(state_with(model, optimizer, parts.masters))},
            {"optimizer", optimizer_dict(parts.state, state.scheduler)},
            {"amp", Dict{{"opt_level", origin.option("amp")}, {"loss_scaler0", loop::scaler_to_dict(scaler)}}},
            {"scheduler", scheduler_to_dict(state.scheduler, state.step, optimizer.lr_scales())},
            {"sampler", Dict{{"epoch", origin.first_epoch() + state.step / state.steps_per_epoch},
                             {"step", state.step % state.steps_per_epoch},
                             {"lanes", origin.number("lanes")},
                             {"batch_size", origin.number("batch-size")},
                             {"drop_last", origin.option("drop-last") == "true" ? 1 : 0},
                             {"dataset_size", origin.train_samples}}},
            {"rng", Dict{{"seed", origin.number("seed")}}},
            {"meta", meta_of(state, optimizer)}};
  const auto defined = [](const at::Tensor& average) { return average.defined(); };
  if (std::any_of(parts.averages.begin(), parts.averages.end(), defined))
    root.set("ema", dict_of(state_with(model, optimizer, parts.averages)));
  return root;
}

std::optional<Origin> find_origin(const Value& value, const std::string& file) {
  const auto* root = value.get_if<Dict>();
  if (root == nullptr || !root->contains("meta") || !root->contains("sampler")) return std::nullopt;
  const ValueView view(value, file);
  const ValueView meta = view["meta"];
  if (!meta.dict().contains("options")) return std::nullopt;
  Origin origin{.options = record_in(meta["options"]),
                .sample_shape = numbers_of(meta["sample_shape"]),
                .train_samples = view["sampler"]["dataset_size"].integer(),
                .data = data_in(meta),
                .versions = meta.find("versions") ? meta["versions"].text() : ""};
  say_held_out(origin.options);
  return origin;
}

checkpoint::LoadedModel load_model(torch::nn::Module& module, const Value& root,
                                   const checkpoint::LoadModelOptions& options, const data::Dataset* data) {
  const checkpoint::ChosenState chosen = checkpoint::choose_state(root, options);
  try {
    return checkpoint::load_model(module, chosen, options);
  } catch (const ConfigError& error) {
    if (data != nullptr) check_input_channels(module, chosen.state, options.file, *data);
    const auto origin = find_origin(root, options.file);
    if (!origin) throw;
    throw ConfigError(error.what(), "; its weights are those of ", origin->network(), ": give that recipe and options");
  }
}

TrainingState read_state(const Value& value, const std::string& file) {
  const auto origin = find_origin(value, file);
  if (!origin) {
    throw DataError(file,
                    ": no checkpoint of a run of this version (it has no \"sampler\" and \"options\" in \"meta\"); ",
                    "give it to --load for its weights");
  }
  const ValueView view(value, file);
  const ValueView meta = view["meta"];
  return {.step = meta["step"].integer(),
          .steps_per_epoch = meta["steps_per_epoch"].integer(),
          .best = meta["best"].number(),
          .best_by = meta.find("best_by") ? meta["best_by"].text() : "",
          .best_at_interval = meta[meta.find("best_at_interval") ? "best_at_interval" : "best"].number(),
          .since_best = meta.find("since_best") ? meta["since_best"].integer() : 0,
          .is_best = meta.find("is_best") && meta["is_best"].boolean(),
          .unevaluated = meta.find("unevaluated") && meta["unevaluated"].boolean(),
          .origin = *origin,
          .skipped = meta.find("skipped") ? loop::skipped_from_list(meta["skipped"]) : std::vector<data::BadSample>()};
}

void restore_model(const Value& value, const std::string& file, torch::nn::Module& model) {
  checkpoint::load_state_dict(model, ValueView(value, file)["model"].dict(), {.file = file, .convert_dtypes = true});
}

void restore(const Value& value, const std::string& file, const torch::nn::Module& model,
             optim::AnyOptimizer& optimizer, amp::LossScaler& scaler, optim::CopyElements copy) {
  const ValueView view(value, file);
  const std::string& kind = view["meta"]["optimizer"].text();
  if (kind != optimizer.name()) {
    throw ConfigError(file, ": its optimizer is ", kind, ", the run's ", std::string(optimizer.name()),
                      "; use --optimizer ", kind);
  }
  optim::OptimizerState state = loop::from_values(checkpoint::optimizer_from_dict(view["optimizer"]), file, copy);
  const optim::OptimizerState own = optimizer.state_dict();
  for (size_t g = 0; g < std::min(state.groups.size(), own.groups.size()); ++g) {
    state.groups[g].options = own.groups[g].options;
  }
  optimizer.load_state_dict(state, names_in(optimizer, model));
  if (view.dict().contains("ema")) load_average(view["ema"], file, model, optimizer);
  loop::scaler_from_dict(view["amp"]["loss_scaler0"], scaler);
}

}  // namespace lockstep::train
