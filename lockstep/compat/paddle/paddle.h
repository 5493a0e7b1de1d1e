// Data parallelism by hand, as in Paddle's dygraph before its DataParallel reduced gradients by itself:
//
//   const auto context = paddle::prepare_context();
//   paddle::DataParallel model(net, context);
//   auto loss = model.scale_loss(loss_of(net->forward(data)));
//   loss.backward();
//   model.apply_collective_grads();
//   optimizer.step();
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <memory>
#include <string>
#include <vector>

#include "lockstep/parallel/gradient_fold.h"
#include "lockstep/world/world.h"

namespace lockstep::paddle {

// This process's place among the trainers, under Paddle's names. It is read from the variables that
// paddle.distributed.launch sets (PADDLE_TRAINER_ID, PADDLE_TRAINERS_NUM, PADDLE_CURRENT_ENDPOINT,
// PADDLE_TRAINER_ENDPOINTS, FLAGS_selected_gpus), or, if they are missing, from those that lockstep::init() reads.
struct Env {
  int nranks = 1;
  int local_rank = 0;  // Paddle's word for the rank among all trainers
  int dev_id = 0;      // the GPU's number
  std::string current_endpoint;
  std::vector<std::string> trainer_endpoints;

  static Env current();  // throws ConfigError for variables that contradict each other
};

// Joins the world: lockstep::init() with Env::current().
std::shared_ptr<World> prepare_context();

class DataParallel {
 public:
  // A collective: checks that all ranks hold the same model and gives them rank 0's parameters and buffers.
  // Throws ConfigError that names the first difference.
  DataParallel(std::shared_ptr<torch::nn::Module> layers, std::shared_ptr<World> world,
               const parallel::BucketOptions& buckets = {});

  torch::nn::Module& layers() const { return *layers_; }

  // Returns the loss ÷ ranks, so that the sum of the ranks' gradients is the gradient of the mean loss.
  at::Tensor scale_loss(const at::Tensor& loss) const;

  // Folds the gradients that backward left; see GradientFold::run().
  void apply_collective_grads() { fold_.run(); }

 private:
  std::shared_ptr<torch::nn::Module> layers_;
  std::shared_ptr<World> world_;
  parallel::GradientFold fold_;
};

}  // namespace lockstep::paddle
