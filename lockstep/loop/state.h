// Saving and resuming a loop of one's own: its state is listed once, under names of one's own, as in the dictionary of
// PyTorch's torch.save. The file has the trainer's format, and PyTorch reads it.
//
//   int64_t step = 0;
//   double best = 0;
//   loop::State state(*world, step, {{"model", ddp}, {"optimizer", optimizer}, {"amp", mixed}, {"schedule", schedule},
//                                    {"sampler", loader}, {"best", best}});
//   checkpoint::CheckpointStore store("runs/mine/checkpoints");
//   state.load(store);  // goes on where the newest checkpoint was saved, if there is one
//   while (step < steps) {
//     …
//     if (++step % 100 == 0) state.save(store);
//   }
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/checkpoint/checkpoint_store.h"
#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/loop/background_saves.h"
#include "lockstep/loop/part.h"
#include "lockstep/world/world.h"

namespace lockstep::loop {

// A part under its name in the file. Takes what make_part() takes.
struct NamedPart {
  template <typename T>
  NamedPart(std::string given, T& value) : name(std::move(given)), part(make_part(value)) {}

  std::string name;
  std::shared_ptr<Part> part;
};

// One thread. World, step and parts outlive it. The generator of the CPU (and of the networks' GPU) is saved besides:
// rank 0's, for all. Where ranks have drawn other numbers, as after manual_seed(seed + rank), those above 0 go on with
// numbers of their own, which rank 0's state and the rank decide.
class State {
 public:
  // `step` counts the steps done. Throws ConfigError for a name that is given twice or is the file's own ("meta",
  // "rng"), and for a network in mixed precision if no part has its fp32 masters, or its loss scale where that changes.
  State(World& world, int64_t& step, std::initializer_list<NamedPart> parts);

  // Loads the newest checkpoint that can be read, at any number of ranks. Returns whether there was one. All ranks read
  // the file, so they all have to see it. A newer file that can't be read is a warning. A collective. Throws
  // ConfigError for a checkpoint of other parts or other kinds of them, and for one that does not fit: another network,
  // schedule or sampler leaves all parts as they were. Throws DataError if the store has checkpoints and none can be
  // read. A checkpoint that was saved as the best becomes best.pt where a killed save has not made it that.
  bool load(checkpoint::CheckpointStore& store);
  // The same for the value of a file.
  void load(const checkpoint::Value& saved, const std::string& file);

  // Rank 0 writes a checkpoint of this step, atomically; `best` makes it the store's best.pt. A collective. Throws, on
  // all ranks, IoError, and ConfigError as value() does, and where the store has checkpoints of later steps.
  void save(checkpoint::CheckpointStore& store, bool best = false);
  // The same, and returns when rank 0 has copied it (background_saves.h).
  void save(BackgroundSaves& saves, bool best = false);
  // The file's content, which shares the parts' memory: whole on rank 0. A collective. Throws ConfigError as the
  // constructor does, for networks that came into mixed precision after it; for an optimizer that has stepped a network
  // of the list and is not in it (of libtorch's, one that a MixedPrecision steps); for a schedule that is not whole;
  // and for a wrapped network whose weights differ between ranks. Weights that are not finite are a warning.
  checkpoint::Value value() { return value_of(/*best=*/false); }

 private:
  checkpoint::Value value_of(bool best);
  void check_mixed() const;
  void check_optimizers() const;
  void check_parts(const checkpoint::ValueView& saved) const;
  bool compare_ranks() const;
  void tell_not_finite();

  World& world_;
  int64_t& step_;
  std::vector<NamedPart> parts_;
  bool told_not_finite_ = false;
};

}  // namespace lockstep::loop
