// The exchange of BatchNorm statistics between the lanes of a step (sync_batch_norm.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/nn/batch_norm.h"
#include "lockstep/parallel/lane_turns.h"

namespace lockstep::parallel {

// Combines the lanes' statistics. `rows`: fp64 [lanes, 1 + 2C], each row a count, C means and C sums of squared
// deviations. By the first, two by two in the order of the fold's tree; by the second, all at once by libtorch's sums
// over lanes, as on devices, where each operation is a launch. Either depends on the lanes alone, not on their ranks.
nn::Moments combine_moments(const at::Tensor& rows);
nn::Moments combine_moments_at_once(const at::Tensor& rows);
// The sum of the rows in the order of the fold's tree.
at::Tensor sum_rows(const at::Tensor& rows);

// The SyncBatchNorms of one model share one group. Called by the thread that runs the step, and by its lanes' threads
// in their turns.
class SyncGroup final : public nn::StatisticsExchange {
 public:
  // `ranks`: the communicator of the ranks whose lanes are joined. Nothing else uses it, since its calls come in the
  // order of forward and backward.
  explicit SyncGroup(std::unique_ptr<comm::Communicator> ranks) : ranks_(std::move(ranks)) {}

  // Runs a step of `lanes` lanes on this rank. Those in `filled`, ascending, have samples, and lane(l) runs for each of
  // them by turns; the others take part with a count of 0, as do ranks without samples. `on_switch` gets indices into
  // `filled`. `device` is that of statistics which are not on the CPU. A collective of the ranks. Throws what a lane
  // throws.
  void run(size_t lanes, const std::vector<size_t>& filled, at::Device device,
           const std::function<void(size_t lane)>& lane, const LaneTurns::OnSwitch& on_switch);

  // Within run(): whether some rank has no samples in this step.
  bool has_idle_ranks() const { return leader_ >= 0; }

  // Makes join() throw ConfigError, as within a step of another network whose lanes on this rank do not take turns
  // here.
  void close(bool closed) { closed_ = closed; }

  // Called by a lane within run(); outside of run() a rank counts as one lane. Collectives of the ranks.
  nn::Moments join(const nn::Moments& own) override;
  at::Tensor add(const at::Tensor& own) override;
  bool keeps_statistics() const override { return !running_ || turns_.current() == 0; }

  int ranks() const { return ranks_->size(); }

 private:
  at::Tensor gather(const at::Tensor& own);
  void announce(int64_t columns, at::Device device);
  void follow(at::Device device);

  std::unique_ptr<comm::Communicator> ranks_;
  LaneTurns turns_;
  bool running_ = false;
  bool closed_ = false;
  size_t lanes_ = 1;
  std::vector<size_t> filled_;
  int leader_ = -1;  // the first rank with samples, which tells ranks without any what is gathered; -1 if all have some
  at::Tensor rows_, all_;  // [lanes, columns]: this rank's for the next exchange, and all ranks' from the last
};

}  // namespace lockstep::parallel
