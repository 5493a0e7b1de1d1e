// What --track asks for, besides metrics.jsonl: metrics.csv, and for TensorBoard scalars, histograms of weights and
// gradients, pictures of masks, options and results.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/log.h"
#include "lockstep/data/batch.h"
#include "lockstep/track/csv_sink.h"
#include "lockstep/track/tensorboard_sink.h"
#include "lockstep/train/parts.h"

namespace lockstep::train {

// Rank 0's. It reads tensors and changes none, so a run has the same bits with it and without. All functions throw
// IoError. One thread.
class Tracking final : public track::MetricSink {
 public:
  // Returns null on other ranks, where nothing is tracked, and where nothing is left to do. Both outlive it.
  static std::unique_ptr<Tracking> of(const Parts& parts, const Logger& log);

  // Begins where metrics.jsonl ends, whose records it takes over unless that has been done.
  Tracking(const Parts& parts, const Logger& log);

  // The record is the last one of metrics.jsonl.
  void write(const track::Record& record) override;

  // Makes histograms of the folded gradients of step `step` as they are before clipping, if they are due then;
  // weights() writes them, so that nothing fails between a backward pass and its update. A tensor with a value that is
  // not finite has none; the first is warned of.
  void gradients(int64_t step);
  // Writes these and histograms of the weights after that step, if they are due then.
  void weights(int64_t step);

  // Keeps pictures of the first samples of a batch of an evaluation, where the recipe makes masks and none are kept.
  void observe(const data::Batch& batch, const at::Tensor& output);
  // Writes the pictures that were kept: the evaluation is over. `split`: "test".
  void pictures(const std::string& split);

  // The run has come to its end.
  void end();

 private:
  bool histograms_due(int64_t step) const;
  void add_histogram(const std::string& tag, int64_t step, const at::Tensor& tensor, double factor);
  void begin_tensorboard();

  const Parts& parts_;
  const Logger& log_;
  std::optional<track::CsvSink> csv_;
  std::optional<track::TensorboardSink> tensorboard_;
  std::vector<std::pair<std::string, track::Histogram>> histograms_;  // of this step, by tag
  std::vector<track::Picture> pictures_;
  int64_t left_out_ = 0, left_out_now_ = 0;  // histograms: of this start, and of this step
};

}  // namespace lockstep::train
