// How the lanes of a step bring their BatchNorm statistics together (sync_batch_norm.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/nn/batch_norm.h"
#include "lockstep/parallel/lane_turns.h"

namespace lockstep::parallel {

// Rows of [count, means, sums of squared deviations], fp64 [lanes, 1 + 2C], combined in the order of the fold's tree.
nn::Moments combine_moments(const at::Tensor& rows);

// What the SyncBatchNorms of one model share.
class SyncGroup final : public nn::StatisticsExchange {
 public:
  // `ranks`: whose lanes are joined; used for this alone, since its calls come in the order of forward and backward.
  explicit SyncGroup(std::unique_ptr<comm::Communicator> ranks) : ranks_(std::move(ranks)) {}

  // A step of `lanes` lanes on this rank, of which those in `filled`, ascending, have samples: runs lane(l) for each of
  // them by turns. The others, and ranks without any, take part with a count of 0. `on_switch` gets places in `filled`.
  // A collective of the ranks. Throws what a lane throws.
  void run(size_t lanes, const std::vector<size_t>& filled, const std::function<void(size_t lane)>& lane,
           const LaneTurns::OnSwitch& on_switch);

  // Within run(), from a lane; outside of it a rank is one lane.
  nn::Moments join(const nn::Moments& own) override;
  at::Tensor add(const at::Tensor& own) override;
  bool keeps_statistics() const override { return !running_ || turns_.current() == 0; }

  int ranks() const { return ranks_->size(); }

 private:
  at::Tensor gather(const at::Tensor& own);
  void announce(int64_t columns);
  void follow();

  std::unique_ptr<comm::Communicator> ranks_;
  LaneTurns turns_;
  bool running_ = false;
  size_t lanes_ = 1;
  std::vector<size_t> filled_;
  int leader_ = -1;        // the first rank with samples, where one has none and must be told what is gathered; or -1
  at::Tensor rows_, all_;  // this rank's lanes at the next exchange, and all lanes at the last: [lanes, columns]
};

}  // namespace lockstep::parallel
