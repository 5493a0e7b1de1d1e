#include "lockstep/compat/paddle/paddle.h"

#include <sstream>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"

namespace lockstep::paddle {
namespace {

constexpr int kMostRanks = 1 << 20;

int number_of(const char* paddle, const char* other, int64_t least, int64_t otherwise) {
  if (const auto given = env_int(paddle, least, kMostRanks)) return static_cast<int>(*given);
  return static_cast<int>(env_int(other, least, kMostRanks).value_or(otherwise));
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

}  // namespace

Env Env::current() {
  Env env{.nranks = number_of("PADDLE_TRAINERS_NUM", "WORLD_SIZE", 1, 1),
          .local_rank = number_of("PADDLE_TRAINER_ID", "RANK", 0, 0),
          .dev_id = number_of("FLAGS_selected_gpus", "LOCAL_RANK", 0, 0),
          .current_endpoint = lockstep::env("PADDLE_CURRENT_ENDPOINT").value_or(""),
          .trainer_endpoints = split(lockstep::env("PADDLE_TRAINER_ENDPOINTS").value_or(""))};
  if (env.local_rank >= env.nranks) {
    throw ConfigError("PADDLE_TRAINER_ID is ", env.local_rank, " and PADDLE_TRAINERS_NUM ", env.nranks,
                      "; trainers are numbered from 0");
  }
  if (!env.trainer_endpoints.empty() && env.trainer_endpoints.size() != static_cast<size_t>(env.nranks)) {
    throw ConfigError("PADDLE_TRAINER_ENDPOINTS names ", env.trainer_endpoints.size(), " endpoints for ", env.nranks,
                      " trainers; it names one for each");
  }
  return env;
}

std::shared_ptr<World> prepare_context() {
  const Env env = Env::current();
  if (!lockstep::env("PADDLE_TRAINERS_NUM")) return init();
  InitOptions options{.rank = env.local_rank, .world_size = env.nranks};
  if (!env.trainer_endpoints.empty()) options.init_method = "tcp://" + env.trainer_endpoints[0];
  return init(options);
}

DataParallel::DataParallel(std::shared_ptr<torch::nn::Module> layers, std::shared_ptr<World> world,
                           const parallel::BucketOptions& buckets)
    : layers_(std::move(layers)), world_(std::move(world)), fold_(*layers_, world_->communicator(), buckets) {}

at::Tensor DataParallel::scale_loss(const at::Tensor& loss) const {
  return world_->size() == 1 ? loss : loss / world_->size();
}

}  // namespace lockstep::paddle
