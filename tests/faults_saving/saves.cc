#include "saves.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/checkpoint/fill_slot.h"
#include "lockstep/checkpoint/formats/pt_image.h"
#include "lockstep/checkpoint/formats/pt_reader.h"
#include "lockstep/checkpoint/formats/testing/files.h"
#include "lockstep/checkpoint/slots/keeper.h"
#include "lockstep/checkpoint/slots/slots.h"

namespace lockstep::faults {
namespace {

namespace fs = std::filesystem;
using checkpoint::Dict;
using checkpoint::Value;
using checkpoint::testing_support::read_file;
using checkpoint::testing_support::TempDir;

at::Tensor filled(int64_t step, int64_t elements) { return at::arange(elements, at::kFloat) + step * 1e-3; }

// What a link, or a step's file, leads to.
std::string wrong_at(const std::string& path, Size size) {
  std::error_code error;
  const fs::path target = fs::is_symlink(path, error) ? fs::read_symlink(path) : fs::path(path).filename();
  const auto step = checkpoint::step_of_name(target.string());
  if (!step) return cat(path, " leads to ", target.string());
  if (!fs::exists(path, error)) return cat(path, " leads nowhere");
  return read_file(path) == file_of(*step, size) ? "" : cat(path, " is not as it was saved");
}

std::string save_by_keeper(const std::string& run, const Value& state, int64_t step) {
  const Descriptor memory = checkpoint::Slots::create(1);
  const auto slots = std::make_shared<checkpoint::Slots>(memory.get());
  const checkpoint::PtImage image(state);
  const int slot = slots->choose().value();
  checkpoint::fill_slot(*slots, slot, image);
  slots->pin(slot, checkpoint::Purpose::kSave);
  slots->end(slot, 0, step);
  const checkpoint::Keeper keeper(slots, {.folder = folder_in(run), .keep_last = 2});
  while (!keeper.at_rest()) usleep(500);
  if (slots->header().ended.load() != 1) return "another error: nothing was asked for";
  return slots->header().failed.load() == 0 ? "saved" : cat("IoError: ", slots->header().error.get());
}

}  // namespace

Value state_of(int64_t step, Size size) {
  at::set_num_threads(1);  // the tests fork, and threads would stay behind
  Dict model;
  model.set("weight", filled(step, size == Size::kLarge ? 550'000 : 9'000).reshape({-1, 10}));
  model.set("bias", filled(step, 10));
  return Dict{{"model", std::move(model)}, {"step", step}, {"empty", at::empty({0})}};
}

std::string folder_in(const std::string& run) { return run + "/checkpoints"; }

checkpoint::CheckpointStore store_in(const std::string& run) {
  return checkpoint::CheckpointStore(folder_in(run), {.keep_last = 2});
}

const std::string& two_saves(Size size) {
  static const TempDir folder;
  static std::map<Size, std::string> made;
  if (const auto known = made.find(size); known != made.end()) return known->second;
  const std::string run = folder / std::to_string(made.size());
  auto store = store_in(run);
  store.save(1, state_of(1, size));
  store.mark_best(1);
  store.save(2, state_of(2, size));
  return made.emplace(size, run).first->second;
}

void copy_two_saves(const std::string& run, Size size) {
  fs::copy(two_saves(size), run, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

std::string name_of(Writer writer) { return writer == Writer::kRank ? "ByTheRank" : "ByTheKeeper"; }

std::string try_save(const std::string& run, int64_t step, Size size, Writer writer) {
  if (writer == Writer::kKeeper) return save_by_keeper(run, state_of(step, size), step);
  try {
    store_in(run).save(step, state_of(step, size));
    return "saved";
  } catch (const IoError& error) {
    return cat("IoError: ", error.what());
  } catch (const std::exception& error) {
    return cat("another error: ", error.what());
  }
}

const std::string& file_of(int64_t step, Size size) {
  static const TempDir folder;
  static std::map<std::pair<int64_t, Size>, std::string> files;
  std::string& file = files[{step, size}];
  if (file.empty()) file = read_file(checkpoint::CheckpointStore(folder.path()).save(step, state_of(step, size)));
  return file;
}

std::string wrong_in(const std::string& run, int64_t oldest, int64_t newest, Size size) {
  const auto store = store_in(run);
  const auto all = store.list();
  if (all.empty()) return "no checkpoint is left";
  const int64_t last = all.back().step;
  if (last < oldest || last > newest) return cat("the newest is of step ", last, ", not of ", oldest, " to ", newest);
  for (const auto& each : all) {
    if (const std::string wrong = wrong_at(each.path, size); !wrong.empty()) return wrong;
  }
  for (const char* link : {"/last.pt", "/best.pt"}) {
    const std::string path = folder_in(run) + link;
    if (!fs::is_symlink(path)) continue;
    if (const std::string wrong = wrong_at(path, size); !wrong.empty()) return wrong;
  }
  try {
    const auto loaded = store.load_newest();
    if (loaded->saved.step != last || !loaded->damaged.empty()) return cat("loaded is that of ", loaded->saved.step);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

std::string left_over_in(const std::string& run) {
  std::string names;
  for (const auto& each : fs::directory_iterator(folder_in(run))) {
    const std::string name = each.path().filename().string();
    if (name.find(".tmp") != std::string::npos) names += ' ' + name;
  }
  return names;
}

int64_t samples_factor() { return env_int("LOCKSTEP_SAVING_SAMPLES", 1, 1'000'000).value_or(1); }

uint64_t seed() { return static_cast<uint64_t>(env_int("LOCKSTEP_SOAK_SEED", 0, 1'000'000'000).value_or(1)); }

}  // namespace lockstep::faults
