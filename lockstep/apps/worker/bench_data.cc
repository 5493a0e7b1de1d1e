// bench data: how fast a loader makes batches, and where time and memory go.
//
// Batches are taken as soon as they are there, and dropped. Rounds go on from each other, so that as much has been read
// ahead at a round's end as at its begin; those of --seconds begin when that much has been read, those of --epochs with
// the first sample, whatever the disk has to fetch for it. Times within the loader are summed over its threads: where
// these are more than the cores, they hold the time in which a thread waits for a core, and cpu_us does not.
#include <algorithm>
#include <cmath>

#include "bench_source.h"
#include "commands.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/data/loader.h"
#include "process_figures.h"

namespace lockstep::worker {
namespace {

constexpr int kRounds = 5;
constexpr double kSeconds = 5;
constexpr int kWarmup = 10;  // steps, more than are read ahead of batches that are not tiny

// What was loaded since the start, and what it took.
struct Totals {
  int64_t images = 0, wait_ns = 0;
  data::ReadStats stats;
};

class DataBench {
 public:
  DataBench(const apps::BenchDataOptions& options, int workers)
      : options_(options),
        resident_before_(resident_mb()),
        dataset_(open_bench_source(options, std::max(1, workers))),
        loader_(dataset_,
                data::LaneSampler(
                    {.dataset_size = dataset_->size(), .lanes = 1, .batch_size = options.batch_size, .seed = 1}),
                {.first_lane = 0, .last_lane = 1, .workers = workers}) {}

  const data::Dataset& dataset() const { return *dataset_; }

  // The images a second of each round.
  std::vector<double> measure() {
    if (!options_.epochs) {
      for (int step = 0; step < kWarmup; ++step) take();
    }
    totals_ = {};
    cpu_before_ = cpu_seconds();
    std::vector<double> rates;
    for (int round = 0; round < options_.epochs.value_or(kRounds); ++round) {
      rates.push_back(measure_round());
      if (round == 0) resident_at_first_ = resident_mb();
    }
    return rates;
  }

  nlohmann::ordered_json figures() const {
    const auto images = static_cast<double>(totals_.images);
    const auto us = [images](int64_t ns) { return static_cast<double>(ns) * 1e-3 / images; };
    return {{"cpu_us", (cpu_seconds() - cpu_before_) * 1e6 / images},
            {"wait_us", us(totals_.wait_ns)},
            {"read_us", us(totals_.stats.read_ns)},
            {"decode_us", us(totals_.stats.decode_ns)},
            {"transform_us", us(totals_.stats.transform_ns)},
            {"file_bytes", static_cast<double>(totals_.stats.bytes) / images},
            {"images", totals_.images},
            {"memory_mb", peak_mb() - resident_before_},
            {"growth_mb", resident_mb() - resident_at_first_}};
  }

 private:
  void take() {
    const data::StepBatch step = loader_.next();
    totals_.images += step.lanes[0].size();
    totals_.wait_ns += step.wait_ns;
    totals_.stats += step.stats;
  }

  double measure_round() {
    const double seconds = options_.seconds.value_or(kSeconds) / kRounds;
    const int64_t before = totals_.images;
    const Stopwatch watch;
    const uint32_t epoch = loader_.position().epoch;
    do {
      take();
    } while (options_.epochs ? loader_.position().epoch == epoch : watch.seconds() < seconds);
    return static_cast<double>(totals_.images - before) / watch.seconds();
  }

  const apps::BenchDataOptions& options_;
  double resident_before_;
  std::shared_ptr<const data::Dataset> dataset_;
  data::Loader loader_;
  Totals totals_;
  double cpu_before_ = 0, resident_at_first_ = 0;
};

std::string text_of(const nlohmann::ordered_json& found) {
  const auto number = [&found](const char* name) { return found[name].get<double>(); };
  const auto whole = [&number](const char* name) { return std::lround(number(name)); };
  const auto& rounds = found["rounds"];
  const auto rates = std::minmax_element(rounds.begin(), rounds.end());
  return cat(found["data"].get<std::string>(), '\n', whole("images_per_second"), " images/s, the median of ",
             rounds.size(), " rounds (", std::lround(rates.first->get<double>()), " to ",
             std::lround(rates.second->get<double>()), "): ", whole("workers"), " workers, batches of ",
             whole("batch_size"), " in ", found["dtype"].get<std::string>(), '\n', whole("cpu_us"),
             " us of processor time an image; by the clock, read ", whole("read_us"), ", decode ", whole("decode_us"),
             ", transform ", whole("transform_us"), " us a thread, and the consumer waits ", whole("wait_us"), " us\n",
             whole("memory_mb"), " MB of memory at most, ", whole("growth_mb"),
             " MB more at the end than after round 1; ", whole("file_bytes"), " bytes of files an image\n");
}

}  // namespace

int bench_data(const BenchOptions& options) {
  const apps::BenchDataOptions& loading = options.loading;
  const int workers = loading.workers ? *loading.workers : loading.threads.value_or(usable_cores());
  DataBench bench(loading, workers);
  std::vector<double> rates = bench.measure();
  std::vector<double> sorted = rates;
  std::sort(sorted.begin(), sorted.end());
  nlohmann::ordered_json found = {{"images_per_second", sorted[sorted.size() / 2]},
                                  {"data", bench.dataset().description()},
                                  {"workers", workers},
                                  {"batch_size", loading.batch_size},
                                  {"shape", bench.dataset().sample_shape()},
                                  {"dtype", config::word_of(loading.dtype.value_or(apps::BenchType::kFp32))},
                                  {"rounds", rates}};
  found.update(bench.figures());
  print(options.json ? found.dump() + '\n' : text_of(found));
  return 0;
}

}  // namespace lockstep::worker
