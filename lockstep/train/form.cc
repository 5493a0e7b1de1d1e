#include "lockstep/train/form.h"

#include <ATen/ops/isfinite.h>

#include "lockstep/base/error.h"
#include "lockstep/optim/held_gradient.h"
#include "lockstep/train/ddp_form.h"
#include "lockstep/train/pipeline_form.h"
#include "lockstep/train/replicas_form.h"

namespace lockstep::train {

std::unique_ptr<Form> make_form(const Parts& parts, const Logger& log) {
  switch (parts.options.parallel.form) {
    case parallel::ParallelForm::kDdp:
      return std::make_unique<DdpForm>(parts, log);
    case parallel::ParallelForm::kDp:
      return std::make_unique<ReplicasForm>(parts);
    case parallel::ParallelForm::kPipeline:
      return std::make_unique<PipelineForm>(parts);
  }
  throw BugError("a form of parallel training that it does not know");
}

void check_form(const Parts& parts) {
  const parallel::ParallelForm form = parts.options.parallel.form;
  if (form == parallel::ParallelForm::kDp) ReplicasForm::check(parts);
  if (form == parallel::ParallelForm::kPipeline) PipelineForm::check(parts);
}

std::string form_text(const Parts& parts) {
  switch (parts.options.parallel.form) {
    case parallel::ParallelForm::kDp:
      return ReplicasForm::text(parts);
    case parallel::ParallelForm::kPipeline:
      return PipelineForm::text(parts);
    default:
      return {};
  }
}

std::string first_not_finite_of(const torch::nn::Module& module) {
  const optim::UseHeldGradients use;
  for (const auto& weight : module.named_parameters()) {
    const at::Tensor& gradient = weight.value().grad();
    if (gradient.defined() && !gradient.isfinite().all().item<bool>()) return weight.key();
  }
  return {};
}

bool has_same_bits(const Parts& parts) {
  const bool is_dp = parts.options.parallel.form == parallel::ParallelForm::kDp;
  return parts.world->communicator().same_bits() && (!is_dp || ReplicasForm::has_bits_of_lanes(parts));
}

}  // namespace lockstep::train
