// The saves that the tests disturb, and what must hold of a run's checkpoints whatever has happened.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/checkpoint/checkpoint_store.h"

namespace lockstep::faults {

// A large state takes several calls to write, one of them of over a megabyte; a small one, a few pages, takes one.
enum class Size { kLarge, kSmall };

// Who writes the file: the rank itself (checkpoint_store.h), or the launcher's thread from a slot that the rank has
// filled (keeper.h).
enum class Writer { kRank, kKeeper };

// The state of a step: the values of no two steps are alike.
checkpoint::Value state_of(int64_t step, Size size);

// The store that the tests save to; it keeps two checkpoints.
checkpoint::CheckpointStore store_in(const std::string& run);
std::string folder_in(const std::string& run);  // of its checkpoints

// A run's folder with the checkpoints of steps 1 and 2, made at the first call.
const std::string& two_saves(Size size = Size::kLarge);
// The same as a copy for `run`, which must not exist.
void copy_two_saves(const std::string& run, Size size = Size::kLarge);

// "saved", or the kind and the line of what save() throws: "IoError: …".
std::string try_save(const std::string& run, int64_t step, Size size = Size::kLarge, Writer writer = Writer::kRank);
// For the names of tests with a writer as their parameter.
std::string name_of(Writer writer);

// The file of a step as an undisturbed save writes it.
const std::string& file_of(int64_t step, Size size = Size::kLarge);

// What is wrong with a run whose newest whole checkpoint must be of one of these steps, as it was saved, and whose
// last.pt and best.pt, if they are there, must lead to whole ones. "" if nothing is.
std::string wrong_in(const std::string& run, int64_t oldest, int64_t newest, Size size = Size::kLarge);
// The temporary files in its checkpoints/, with a blank before each.
std::string left_over_in(const std::string& run);

// How many times as many samples a soak draws (LOCKSTEP_SAVING_SAMPLES; 1), and from which seed (LOCKSTEP_SOAK_SEED).
int64_t samples_factor();
uint64_t seed();

}  // namespace lockstep::faults
