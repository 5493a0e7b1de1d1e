// A run for TensorBoard: the numbers of its records as scalars, besides texts, histograms, pictures and
// hyperparameters.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/track/event_file.h"
#include "lockstep/track/histogram.h"
#include "lockstep/track/metric_sink.h"

namespace lockstep::track {

// A picture as a PNG file.
struct Picture {
  int width = 0, height = 0;
  std::string png = {};
};

using HyperParameter = std::pair<std::string, std::variant<bool, double, std::string>>;

// All functions throw IoError. One thread.
class TensorboardSink final : public MetricSink {
 public:
  // Makes a new event file in `folder`; the run's next step is `first_step`, and what earlier files say of it and later
  // ones is dropped by the viewer.
  TensorboardSink(const std::string& folder, int64_t first_step) : file_(folder, first_step) {}

  // Scalars by kind, those of evaluations by split: "train/loss", "test/accuracy", "train/data/wait". The time is the
  // record's.
  void write(const Record& record) override;

  void text(const std::string& tag, int64_t step, const std::string& markdown);
  void histogram(const std::string& tag, int64_t step, const Histogram& histogram);
  void picture(const std::string& tag, int64_t step, const Picture& picture);
  // For the HParams tab, at the run's start. `metrics` are tags of scalars.
  void begin(const std::vector<HyperParameter>& parameters, const std::vector<std::string>& metrics);
  // The same tab learns that the run has come to its end.
  void end();

 private:
  void put(int64_t step, const ProtoWriter& value);

  EventFile file_;
};

}  // namespace lockstep::track
