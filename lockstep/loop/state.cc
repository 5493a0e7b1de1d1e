#include "lockstep/loop/state.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <span>
#include <unordered_map>

#include "lockstep/base/board.h"
#include "lockstep/base/error.h"
#include "lockstep/base/fnv.h"
#include "lockstep/base/log.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/checkpoint/formats/read_checkpoint.h"
#include "lockstep/checkpoint/formats/value_view.h"
#include "lockstep/comm/text_exchange.h"
#include "lockstep/loop/weights_check.h"
#include "lockstep/world/once.h"

namespace lockstep::loop {
namespace {

using checkpoint::Dict;
using checkpoint::Value;
using checkpoint::ValueView;

const std::set<std::string> kOwnNames = {"meta", "rng"};
const std::set<std::string> kTrainersNames = {"meta", "rng", "scheduler", "ema"};

Dict random_state() {
  Dict state{{"cpu", at::globalContext().defaultGenerator(at::kCPU).get_state()}};
  if (at::hasCUDA()) state.set("cuda", at::globalContext().defaultGenerator(at::kCUDA).get_state());
  return state;
}

uint64_t hash_of(const at::Tensor& state) {
  return xxh3(std::span(static_cast<const uint8_t*>(state.const_data_ptr()), state.nbytes()));
}

std::string random_hash() {
  std::string text;
  for (const auto& [name, state] : random_state()) text += cat(hash_of(*state.get_if<at::Tensor>()), ' ');
  return text;
}

// Of ranks that drew other numbers than rank 0 those get numbers of their own again, which rank 0's state decides.
void set_random_state(const ValueView& saved, int rank, bool are_own) {
  const auto set = [&](const char* name, at::DeviceType device) {
    const auto state = saved.find(name);
    if (!state || (device == at::kCUDA && !at::hasCUDA())) return;
    at::Generator generator(at::globalContext().defaultGenerator(device));
    if (are_own && rank > 0) {
      generator.set_current_seed(fnv1a(hash_of(state->tensor()), static_cast<uint64_t>(rank)));
    } else {
      generator.set_state(state->tensor().clone());
    }
  };
  set("cpu", at::kCPU);
  set("cuda", at::kCUDA);
}

std::string names_of(const std::set<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += cat(text.empty() ? "" : ", ", name);
  return text;
}

}  // namespace

State::State(World& world, int64_t& step, std::initializer_list<NamedPart> parts)
    : world_(world), step_(step), parts_(parts) {
  std::set<std::string> names;
  for (const NamedPart& each : parts_) {
    if (kOwnNames.contains(each.name)) throw ConfigError("loop state: the name ", each.name, " is the file's own");
    if (!names.insert(each.name).second) throw ConfigError("loop state: two parts have the name ", each.name);
  }
  check_mixed();
}

// What mixed precision has beside the networks' weights: else a resumed loop would begin it anew in silence.
void State::check_mixed() const {
  const auto has = [&](const amp::MixedPrecision* mixed) {
    return std::any_of(parts_.begin(), parts_.end(),
                       [&](const NamedPart& each) { return each.part->mixed() == mixed; });
  };
  for (const NamedPart& each : parts_) {
    if (each.part->network() == nullptr) continue;
    for (const at::Tensor& parameter : each.part->network()->parameters()) {
      const auto* mixed = amp::MixedPrecision::find_for(parameter);
      if (mixed == nullptr || !mixed->has_optimizers() || has(mixed)) continue;
      const bool masters = mixed->policy().master_weights;
      const bool scale = mixed->scaler().enabled() && mixed->scaler().options().dynamic;
      if (!masters && !scale) continue;
      throw ConfigError("loop state: ", each.name, " is in mixed precision, ", mixed->policy().name(), ", whose ",
                        masters ? "fp32 masters" : "loss scale",
                        " no part has; list the MixedPrecision, too: ", "{\"amp\", mixed}");
    }
  }
}

// An optimizer that has stepped a network and that no part is: a resumed loop would begin its moments anew in silence.
// Of libtorch's those are seen that a MixedPrecision steps.
void State::check_optimizers() const {
  std::unordered_map<const c10::TensorImpl*, std::string> network_of;
  std::vector<optim::OptimizerRef> optimizers;
  for (auto* each : optim::AnyOptimizer::of_this_thread()) optimizers.emplace_back(each);
  for (const NamedPart& each : parts_) {
    if (const auto* mixed = each.part->mixed()) mixed->add_libtorchs(optimizers);
    if (each.part->network() == nullptr) continue;
    for (const at::Tensor& parameter : each.part->network()->parameters()) {
      network_of.emplace(parameter.unsafeGetTensorImpl(), each.name);
    }
  }
  for (const auto& optimizer : optimizers) {
    const auto is_it = [&](const NamedPart& each) { return each.part->is(optimizer); };
    if (!optimizer.has_stepped() || std::any_of(parts_.begin(), parts_.end(), is_it)) continue;
    for (const at::Tensor& parameter : optim::parameters_of(optimizer)) {
      const auto network = network_of.find(parameter.unsafeGetTensorImpl());
      if (network == network_of.end()) continue;
      throw ConfigError("loop state: no part has the optimizer that steps ", network->second,
                        ", and a resumed loop would begin it anew; list it, too: {\"optimizer\", optimizer}");
    }
  }
}

// A file has rank 0's weights. A step compares some elements of each, and only here all of them. Returns whether ranks
// have drawn other random numbers.
bool State::compare_ranks() const {
  std::string own, names;
  for (const NamedPart& each : parts_) {
    const std::string hash = each.part->weights_hash();
    own += hash;
    if (!hash.empty()) names += cat(names.empty() ? "" : ", ", each.name);
  }
  const auto hashes = comm::gather_texts(world_.communicator(), own);
  const auto other = std::ranges::find_if(hashes, [&](const std::string& hash) { return hash != hashes.front(); });
  const auto drawn = comm::gather_texts(world_.communicator(), random_hash());
  const bool own_numbers = std::ranges::any_of(drawn, [&](const auto& each) { return each != drawn.front(); });
  if (other == hashes.end()) return own_numbers;
  throw ConfigError("step ", step_, ": the weights of ", names, " on rank ", other - hashes.begin(),
                    " differ from rank 0's, which a checkpoint would keep; they were changed on some ranks only, or "
                    "updates are rounded otherwise there (ATEN_CPU_CAPABILITY, OMP_NUM_THREADS), or each rank has a "
                    "network of its own, as a pipeline's stages, which its ranks save one by one");
}

void State::tell_not_finite() {
  if (told_not_finite_ || world_.rank() != 0) return;
  for (const NamedPart& each : parts_) {
    const std::string name = each.part->network() == nullptr ? "" : find_not_finite(*each.part->network());
    if (name.empty()) continue;
    told_not_finite_ = true;
    Logger::from_environment("rank 0").warning("step ", step_,
                                               ": the checkpoint has weights that are not finite: ", each.name, ' ',
                                               name, "; earlier ones may be gone soon (keep_last)");
    return;
  }
}

Value State::value_of(bool best) {
  together(world_.communicator(), [&] {
    check_mixed();
    check_optimizers();
  });
  const bool own_numbers = compare_ranks();
  tell_not_finite();
  ByParameter masters;
  for (const NamedPart& each : parts_) masters.merge(each.part->masters());
  Dict root, kinds;
  for (const NamedPart& each : parts_) {
    root.set(each.name, each.part->save(masters));
    kinds.set(each.name, each.part->kind());
  }
  root.set("rng", random_state());
  Dict meta{{"format", "lockstep"}, {"version", 2}, {"step", step_}, {"parts", kinds}};
  if (best) meta.set("is_best", true);
  if (own_numbers) meta.set("own_random_numbers", true);
  root.set("meta", std::move(meta));
  return root;
}

void State::save(checkpoint::CheckpointStore& store, bool best) {
  const Value whole = value_of(best);
  once(world_, OnceScope::kWorld, [&] {
    store.refuse_later(step_);
    BoardRank& self = world_.self();
    const SavingOnBoard saving(self);
    store.save(step_, whole, [&self] { self.beat(); });
    if (best) store.mark_best(step_);
  });
}

void State::save(BackgroundSaves& saves, bool best) { saves.put(value_of(best), step_, best); }

// The file is a loop's. Its parts are those of this loop, of equal kinds. The trainer's files name no kinds, and have
// parts of their own.
void State::check_parts(const ValueView& saved) const {
  if (!saved.dict().contains("meta")) {
    throw DataError(saved.file(),
                    ": no checkpoint of a loop: it has no \"meta\"; for its weights use load_state_dict()");
  }
  const auto kinds = saved["meta"].find("parts");
  const std::set<std::string>& others = kinds ? kOwnNames : kTrainersNames;
  std::set<std::string> unknown, missing;
  for (const auto& [key, value] : saved.dict()) {
    const std::string name = checkpoint::key_text(key);
    const bool listed =
        std::any_of(parts_.begin(), parts_.end(), [&](const NamedPart& each) { return each.name == name; });
    if (!listed && !others.contains(name)) unknown.insert(name);
  }
  for (const NamedPart& each : parts_) {
    if (!saved.dict().contains(each.name)) missing.insert(each.name);
  }
  if (!missing.empty() || !unknown.empty()) {
    throw ConfigError(saved.file(),
                      ": the checkpoint of another loop:", missing.empty() ? "" : cat(" it lacks ", names_of(missing)),
                      !missing.empty() && !unknown.empty() ? "," : "",
                      unknown.empty() ? "" : cat(" it has ", names_of(unknown), ", which this loop does not list"));
  }
  if (!kinds) return;
  for (const NamedPart& each : parts_) {
    const std::string& kind = (*kinds)[each.name].text();
    if (kind != each.part->kind()) {
      throw ConfigError(saved.file(), ": ", each.name, " is ", kind, " in the checkpoint, and ", each.part->kind(),
                        " in this loop");
    }
  }
}

void State::load(const Value& saved, const std::string& file) {
  const ValueView view(saved, file);
  int64_t step = 0;
  together(world_.communicator(), [&] {
    check_parts(view);
    step = view["meta"]["step"].integer();
    for (const NamedPart& each : parts_) each.part->check(view[each.name]);
  });
  ByParameter values;
  together(world_.communicator(), [&] {
    for (const NamedPart& each : parts_) {
      each.part->load(view[each.name]);
      values.merge(each.part->loaded());
    }
  });
  for (const NamedPart& each : parts_) each.part->load_masters(values);
  const bool own_numbers = view["meta"].find("own_random_numbers").has_value();
  if (const auto random = view.find("rng")) set_random_state(*random, world_.rank(), own_numbers);
  step_ = step;
}

// Rank 0 chooses the file; a file that it can't read is out for all.
bool State::load(checkpoint::CheckpointStore& store) {
  std::optional<checkpoint::CheckpointStore::Loaded> newest;
  std::string chosen;
  together(world_.communicator(), [&] {
    if (world_.rank() != 0) return;
    newest = store.load_newest();
    if (newest) chosen = newest->saved.path;
  });
  chosen = comm::gather_texts(world_.communicator(), chosen).front();
  if (chosen.empty()) return false;
  Value read;
  together(world_.communicator(),
           [&] { read = newest ? std::move(newest->value) : checkpoint::open_checkpoint(chosen); });
  if (newest) {
    for (const auto& each : newest->damaged) Logger::from_environment("rank 0").warning(each.why);
  }
  load(read, chosen);
  if (ValueView(read, chosen)["meta"].find("is_best")) {
    once(world_, OnceScope::kWorld, [&] { store.mark_best(newest->saved.step); });
  }
  return true;
}

}  // namespace lockstep::loop
