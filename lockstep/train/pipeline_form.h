// A pipeline: each rank computes one stage of the network, and the lanes are its micro-batches. Several pipelines
// divide the lanes among themselves.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lockstep/parallel/pipeline/pipeline.h"
#include "lockstep/parallel/pipeline/pipeline_groups.h"
#include "lockstep/parallel/pipeline/stage_plan.h"
#include "lockstep/train/form.h"
#include "lockstep/train/lane_loss.h"

namespace lockstep::train {

// Each rank holds the whole network, whose weights the ranks of a node share; it trains its own stage's.
class PipelineForm final : public Form {
 public:
  // The stages of so many ranks' network. Throws ConfigError for a recipe whose models don't say their layers, and as
  // plan_stages().
  static parallel::StagePlan plan(const Recipe& recipe, const Model& model, const std::vector<int64_t>& shape,
                                  int stages);
  static void check(const Parts& parts);  // throws ConfigError for what the form can't take
  explicit PipelineForm(const Parts& parts);

  World::Lanes lanes() const override;
  parallel::StepResult run(int64_t number, data::StepBatch& batch, double decision) override;
  void sync_buffers() override;
  std::string first_not_finite() const override;
  bool notes_lanes() const override { return groups_.stage == 0; }
  static std::string text(const Parts& parts);

 private:
  void check_gradients(int64_t number) const;

  const Parts& parts_;
  LaneLoss loss_;
  parallel::PipelineGroups groups_;
  std::shared_ptr<nn::Stage> stage_;
  std::optional<parallel::Pipeline> pipeline_;
  std::vector<std::vector<at::Tensor>> buffers_;  // of the network, by stage
};

}  // namespace lockstep::train
