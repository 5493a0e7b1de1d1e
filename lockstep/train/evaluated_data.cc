#include "lockstep/train/evaluated_data.h"

#include "lockstep/base/error.h"
#include "lockstep/data/relabelled.h"
#include "lockstep/data/subset.h"
#include "lockstep/train/data_list.h"
#include "lockstep/train/folder/run_folder.h"
#include "lockstep/train/run_data.h"

namespace lockstep::train {
namespace {

std::string name_of(const std::string& path) { return path.empty() ? "data made on the spot" : path; }

// The first part that there is to judge by.
Part first_part(const data::Splits& data) {
  return data.test != nullptr ? Part::kTest : data.validation != nullptr ? Part::kValidation : Part::kTrain;
}

std::shared_ptr<const data::Dataset> samples_of(const data::Splits& data, Part part) {
  return data::as_evaluated(part == Part::kTest ? data.test : part == Part::kValidation ? data.validation : data.train);
}

// The part that is asked for, or the first. Throws DataError where there is none.
Part wanted_part(const data::Splits& data, const EvaluationRequest& asked) {
  if (!asked.part) return first_part(data);
  const bool is_there = *asked.part == Part::kTrain || (*asked.part == Part::kTest ? data.test : data.validation);
  if (is_there) return *asked.part;
  throw DataError(name_of(asked.path), ": has no ", text_of(*asked.part),
                  " part; leave --split out, or choose another");
}

EvaluatedData wanted_samples(const data::Splits& data, const EvaluationRequest& asked) {
  const Part part = wanted_part(data, asked);
  return {.samples = samples_of(data, part), .part = part};
}

// Compares the data with those of the run that a checkpoint records.
class Comparison {
 public:
  Comparison(const EvaluationRequest& asked, const Origin& origin, const OpenedData& data)
      : asked_(asked), origin_(origin), data_(data) {}

  // The part that the run's own test was on, or out of which that was held.
  Part judged() const {
    if (data_.splits.test != nullptr) return Part::kTest;
    return origin_.held_out().holds_some() ? Part::kTrain : first_part(data_.splits);
  }

  bool is_runs(Part part) const {
    if (is_recorded(part)) return !differs(origin_.data, data_.facts, part);
    return is_recorded(Part::kTrain) ? !differs(origin_.data, data_.facts, Part::kTrain) : has_runs_size();
  }

  // What the run's own test was on, of data whose judged() part is_runs().
  EvaluatedData runs_samples() const {
    if (judged() != Part::kTrain) return {.samples = samples_of(data_.splits, judged()), .own = true, .part = judged()};
    return {.samples = runs_parts().test,
            .own = true,
            .part = origin_.held_out().holds_some() ? Part::kValidation : Part::kTrain};
  }

  // The parts as the run had them.
  data::Splits runs_parts() const { return data::complete(data_.splits, origin_.held_out(), seed()).splits; }

  // How the data are others: in which file, else by their number, else by their fingerprints.
  std::string difference() const {
    const DataFiles listed = read_data_list(asked_.run_folder);
    const Part part = differs(origin_.data, data_.facts, judged()) ? judged() : Part::kTrain;
    if (differs(origin_.data, data_.facts, part) && (of(listed, part) || has_runs_size())) {
      return train::difference(origin_.data, data_.facts, part, listed, data_.files);
    }
    return cat(origin_.train_samples, " samples of ", shape_text(origin_.sample_shape), " to train on, and these are ",
               size_of_train(), " of ", shape_text(data_.splits.train->sample_shape()));
  }

  std::string other_data() const {
    const bool elsewhere =
        asked_.run_data && *asked_.run_data != asked_.path && !same_place(*asked_.run_data, asked_.path);
    const std::string what = cat("evaluated on ", name_of(asked_.path), ", and the run was trained on ");
    if (elsewhere) return what + name_of(*asked_.run_data);
    const bool all = first_part(data_.splits) == Part::kTrain;
    return cat(what, "other data: ", difference(), all ? "; samples that it was trained on may be among them" : "");
  }

  std::string other_shape() const {
    const auto now = data_.splits.train->sample_shape();
    if (now == origin_.sample_shape) return "";
    return cat("evaluated on samples of ", shape_text(now), ", and the run was trained on ",
               shape_text(origin_.sample_shape));
  }

 private:
  uint64_t seed() const { return static_cast<uint64_t>(origin_.number("seed")); }
  bool is_recorded(Part part) const { return !of(origin_.data.fingerprints, part).empty(); }

  int64_t size_of_train() const {
    const auto size = data_.splits.train->size();
    try {
      return size - std::ssize(data::hold_out(*data_.splits.train, origin_.held_out(), seed()).validation);
    } catch (const ConfigError&) {  // other data, which have none of the files
      return size;
    }
  }

  // Older checkpoints say nothing else of their data.
  bool has_runs_size() const {
    return size_of_train() == origin_.train_samples && data_.splits.train->sample_shape() == origin_.sample_shape;
  }

  const EvaluationRequest& asked_;
  const Origin& origin_;
  const OpenedData& data_;
};

EvaluatedData pick(const EvaluationRequest& asked, const Origin& origin, const OpenedData& opened) {
  const Comparison comparison(asked, origin, opened);
  if (comparison.is_runs(comparison.judged())) {
    if (asked.part == Part::kTest) wanted_part(opened.splits, asked);  // what was held out is no test part
    EvaluatedData picked = asked.part ? wanted_samples(comparison.runs_parts(), asked) : comparison.runs_samples();
    picked.own = !asked.part || *asked.part == Part::kTest;
    if (differs(origin.data, opened.facts, Part::kTrain)) {
      picked.warnings.push_back(
          cat(name_of(asked.path), ": the training data have changed since: ",
              difference(origin.data, opened.facts, Part::kTrain, read_data_list(asked.run_folder), opened.files)));
    }
    if (const std::string other = comparison.other_shape(); !other.empty()) picked.warnings.push_back(other);
    return picked;
  }
  if (!asked.named && asked.run_data && !asked.path.empty()) {
    throw DataError(asked.path, ": not the data that the run was trained on: ", comparison.difference(),
                    "; put them back, or say --data ", asked.path, " to evaluate on them as they are");
  }
  EvaluatedData others = wanted_samples(opened.splits, asked);
  others.warnings.push_back(comparison.other_data());
  return others;
}

// Gives the samples the run's classes.
void name_classes(EvaluatedData& data, const data::Classes& of_run) {
  const data::Classes own = data::classes_of(*data.samples);
  if (of_run.count == 0 || own == of_run) return;
  data.samples = data::relabelled(data.samples, of_run);
  if (own.names.empty() != of_run.names.empty()) {
    data.warnings.push_back(
        cat(own.names.empty() ? "the data's" : "the run's", " classes have no names, so that each goes by its number"));
  }
  if (own.count < of_run.count) {
    data.warnings.push_back(cat("the data have ", own.count, " of the run's ", of_run.count, " classes"));
  }
}

}  // namespace

EvaluatedData open_evaluated_data(const Recipe& recipe, const EvaluationRequest& asked,
                                  const std::optional<Origin>& origin, World& world) {
  const int64_t seed = origin ? origin->number("seed") : TrainOptions().seed;
  const OpenedData opened = open_data(recipe, asked.path, static_cast<uint64_t>(seed), asked.channels_last, world,
                                      asked.run_folder.empty() ? nullptr : read_findings(asked.run_folder),
                                      {.passes_over_bad = asked.passes_over_bad});
  if (!origin) return wanted_samples(opened.splits, asked);
  EvaluatedData data = pick(asked, *origin, opened);
  name_classes(data, origin->data.classes);
  return data;
}

}  // namespace lockstep::train
