// Data parallelism: each rank computes its lanes with a network of its own.
#pragma once

#include <memory>

#include "lockstep/train/fixed_batch.h"
#include "lockstep/train/form.h"
#include "lockstep/train/lane_loss.h"

namespace lockstep::train {

class DdpForm : public Form {
 public:
  // `hook`: reduces gradients in place of the fold.
  DdpForm(const Parts& parts, const Logger& log, std::shared_ptr<parallel::CommHook> hook = nullptr);

  World::Lanes lanes() const override { return parts_.world->own_lanes(parts_.plan.lanes); }
  parallel::StepResult run(int64_t number, data::StepBatch& batch, double decision) override;
  void sync_buffers() override { ddp_.sync_buffers(); }
  std::string first_not_finite() const override { return ddp_.reducer().first_not_finite(); }
  void make_room() override { ddp_.make_room(); }
  void report(Reporter& reporter) const override { reporter.reductions(ddp_); }

  parallel::DistributedDataParallel& ddp() { return ddp_; }

 protected:
  const Parts& parts_;

 private:
  void place(data::StepBatch& batch);

  const Logger& log_;
  LaneLoss loss_;
  parallel::DistributedDataParallel ddp_;
  FixedBatch fixed_;   // where steps are recorded
  bool told_ = false;  // that they are, or why they can't be
};

}  // namespace lockstep::train
