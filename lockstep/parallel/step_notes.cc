#include "lockstep/parallel/step_notes.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <iterator>

#include "lockstep/base/error.h"
#include "lockstep/base/fnv.h"
#include "lockstep/parallel/gradients/named_parameter.h"
#include "lockstep/parallel/step_checks.h"

namespace lockstep::parallel {

namespace {

constexpr double StepNotes::*kAll[] = {
    &StepNotes::loss,    &StepNotes::decision, &StepNotes::others, &StepNotes::samples, &StepNotes::unfolded,
    &StepNotes::weights, &StepNotes::modes,    &StepNotes::lanes,  &StepNotes::numbers, &StepNotes::order};
static_assert(sizeof(StepNotes) == std::size(kAll) * sizeof(double));

}  // namespace

NotesFold::NotesFold(const StepNotes& own, int64_t step, comm::Communicator& comm)
    : notes_(at::empty({std::ssize(kAll)}, at::kDouble)) {
  auto* note = notes_.mutable_data_ptr<double>();
  for (const auto each : kAll) *note++ = own.*each;
  work_ = comm.fold({notes_}, {.label = cat("the loss of step ", step)});
}

StepNotes NotesFold::wait() {
  work_->wait();
  const auto* note = notes_.const_data_ptr<double>();
  StepNotes sums;
  for (const auto each : kAll) sums.*each = *note++;
  return sums;
}

double hash_of(const std::vector<std::string>& names) {
  uint64_t hash = kFnvSeed;
  for (const auto& name : names) hash = fnv1a(hash, name);
  return names.empty() ? 0 : static_cast<double>(hash >> 24);
}

double number_hash(int lane) {
  return static_cast<double>(fnv1a(kFnvSeed, std::string_view(reinterpret_cast<const char*>(&lane), sizeof(lane))) >>
                             32);
}

double order_note(uint64_t order_hash) {
  constexpr uint64_t kMix = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio: small numbers differ, too
  return order_hash == 0 ? 0 : static_cast<double>(std::max<uint64_t>(1, order_hash * kMix >> 24));
}

void check_notes(const StepNotes& sum, const StepNotes& own, int64_t samples, const std::vector<std::string>& unfolded,
                 const std::string& whose, const comm::Communicator& comm) {
  if (sum.samples != static_cast<double>(samples)) {
    throw ConfigError(whose, ": the lanes of all ranks hold ", sum.samples, " samples, the global batch ", samples,
                      "; every lane must be some rank's, and all ranks have one batch size");
  }
  if (sum.order != own.order * comm.size()) {
    throw ConfigError(
        whose, ", rank ", comm.rank(),
        ": its loader and those of other ranks go through data of another size, in another order, or are at "
        "another step; give all ranks the same, for each reads its own lanes of one order");
  }
  double numbers = 0;
  for (int lane = 0; lane < static_cast<int>(sum.lanes); ++lane) numbers += number_hash(lane);
  if (sum.numbers != numbers) {
    throw ConfigError(whose, ": the ranks' ", sum.lanes, " lanes don't have the numbers from 0 to ", sum.lanes - 1,
                      ", each once; a lane's number, by which it draws, is its place among those of all ranks");
  }
  if (sum.unfolded != own.unfolded * comm.size()) {
    throw ConfigError(whose, ": .grad holds gradients that were not folded, on rank ", comm.rank(), " of ",
                      unfolded.empty() ? "no parameter" : some_of(unfolded),
                      ", on another rank of others; zero_grad() them, or give all ranks those of the same parameters");
  }
  if (sum.modes != own.modes * comm.size()) {
    throw ConfigError(whose, ", rank ", comm.rank(),
                      ": its network and those of other ranks are in different modes: train() or eval() was called on "
                      "some ranks only, as by an evaluation on one; call it on all");
  }
  check_same_weights(own.weights, sum.weights, comm.size(), cat(whose, ", rank ", comm.rank()));
}

}  // namespace lockstep::parallel
