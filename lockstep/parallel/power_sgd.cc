#include "lockstep/parallel/power_sgd.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <limits>
#include <map>

#include "lockstep/base/error.h"
#include "lockstep/base/philox.h"

namespace lockstep::parallel {
namespace {

// The state of one gradient between steps.
struct Memory {
  at::Tensor q, error;
  double scale = 1;  // the loss scale that is in the error
};

// What a step is to leave, once all of its gradients are known to be finite.
struct Staged {
  Memory* memory;
  Memory value;
};

// One gradient under way.
struct Matrix {
  at::Tensor gradient;  // as the bucket has it
  at::Tensor m;         // [n, k], with the last step's error
  at::Tensor p, q;
  Memory* memory;
};

at::Tensor as_matrix(const at::Tensor& gradient) { return gradient.reshape({gradient.size(0), -1}); }

class PowerSgdWork final : public comm::Work {
 public:
  PowerSgdWork(std::vector<Matrix> matrices, std::vector<at::Tensor> whole, const GradBucket& bucket,
               comm::Communicator& comm, const PowerSgdOptions& options, std::vector<Staged>& staged)
      : matrices_(std::move(matrices)),
        label_(bucket.label),
        step_(bucket.step),
        scale_(bucket.loss_scale),
        comm_(comm),
        options_(options),
        staged_(staged) {
    std::vector<at::Tensor> first = std::move(whole);
    for (const auto& matrix : matrices_) first.push_back(matrix.p);
    first_ = comm_.fold(std::move(first), {.label = label_ + ", P", .step = step_});
  }

  bool done() override { return finished_; }  // only wait() begins the second half
  bool wait_for(std::chrono::nanoseconds time) override {
    if (!finished_ && first_->wait_for(time)) wait();
    return finished_;
  }
  std::chrono::nanoseconds elapsed() const override {
    return first_->elapsed() + (second_ ? second_->elapsed() : std::chrono::nanoseconds(0));
  }

  void wait() override {
    const c10::AutoGradMode no_grad(false);
    first_->wait();
    if (finished_) return;
    // P is the same on all ranks, and finite only if all ranks' gradients are.
    const auto is_finite = [](const Matrix& matrix) { return matrix.p.isfinite().all().item<bool>(); };
    if (!std::all_of(matrices_.begin(), matrices_.end(), is_finite)) return overflow();
    std::vector<at::Tensor> qs;
    for (auto& matrix : matrices_) {
      orthogonalize(matrix.p, options_.orthogonalization_epsilon);
      matrix.q.copy_(at::matmul(matrix.m.t(), matrix.p));
      qs.push_back(matrix.q);
    }
    if (!qs.empty()) {
      second_ = comm_.fold(std::move(qs), {.label = label_ + ", Q", .step = step_});
      second_->wait();
    }
    for (auto& matrix : matrices_) finish(matrix);
    finished_ = true;
  }

 private:
  // The step has to be skipped, and its gradients say so.
  void overflow() {
    for (auto& matrix : matrices_) matrix.gradient.fill_(std::numeric_limits<float>::quiet_NaN());
    finished_ = true;
  }

  void finish(Matrix& matrix) {
    const at::Tensor sum = at::matmul(matrix.p, matrix.q.t());
    matrix.gradient.copy_(sum.view(matrix.gradient.sizes()));
    at::Tensor error;
    if (options_.use_error_feedback) error = matrix.m.sub_(sum, 1.0 / comm_.size());
    staged_.push_back({matrix.memory, {.q = matrix.q, .error = error, .scale = scale_}});
  }

  std::vector<Matrix> matrices_;
  std::string label_;
  uint64_t step_;
  double scale_;
  comm::Communicator& comm_;
  const PowerSgdOptions& options_;
  std::vector<Staged>& staged_;
  std::shared_ptr<comm::Work> first_, second_;
  bool finished_ = false;
};

class PowerSgd final : public CommHook {
 public:
  explicit PowerSgd(const PowerSgdOptions& options) : options_(options) { options_.check(); }

  std::string name() const override { return cat("PowerSGD of rank ", options_.matrix_approximation_rank); }

  void attach(std::shared_ptr<World> world, const std::shared_ptr<torch::nn::Module>& network) override {
    if (world_ != nullptr && (network_.owner_before(network) || network.owner_before(network_))) {
      throw ConfigError(name(), " serves another network, whose errors it keeps; make a hook for each");
    }
    world_ = std::move(world);
    network_ = network;
  }

  State state_dict() override {
    const c10::AutoGradMode no_grad(false);
    State state = {{"iteration", at::full({}, step_, at::kLong)}};
    for (const auto& [bucket, memories] : memories_) {
      for (size_t i = 0; i < memories.size(); ++i) {
        const Memory& memory = memories[i];
        if (!memory.q.defined()) continue;
        const std::string place = cat(bucket, '.', i);
        state.emplace("q." + place, memory.q);
        if (!memory.error.defined()) continue;
        state.emplace("scale." + place, at::full({}, memory.scale, at::kDouble));
        state.emplace("errors." + place,
                      world_ == nullptr ? memory.error.unsqueeze(0) : world_->communicator().gather(memory.error, 0));
      }
    }
    return state;
  }

  void load_state_dict(const State& state) override {
    const c10::AutoGradMode no_grad(false);
    const auto iteration = state.find("iteration");
    if (iteration == state.end()) throw ConfigError(name(), ": the state has no \"iteration\": it is of another hook");
    Memories loaded;
    for (const auto& [key, value] : state) {
      if (key != "iteration") load(key, value, loaded);
    }
    memories_ = std::move(loaded);
    staged_.clear();
    step_ = iteration->second.item<int64_t>();
  }

  std::shared_ptr<comm::Work> begin(const GradBucket& bucket, comm::Communicator& comm) override {
    const c10::AutoGradMode no_grad(false);
    if (bucket.index == 0) {
      ++step_;
      staged_.clear();
    }
    if (step_ <= options_.start_powerSGD_iter) {
      return comm.fold(bucket.gradients, {.label = bucket.label, .step = bucket.step});
    }
    std::vector<Matrix> matrices;
    std::vector<at::Tensor> whole;
    auto& memories = memories_[bucket.index];
    if (memories.size() > bucket.gradients.size()) refuse(bucket.label);
    memories.resize(bucket.gradients.size());
    for (size_t i = 0; i < bucket.gradients.size(); ++i) {
      const at::Tensor& gradient = bucket.gradients[i];
      const int64_t rows = gradient.dim() > 1 ? gradient.size(0) : 1;
      if (gradient.dim() > 1 && worth_compressing(rows, gradient.numel() / rows, options_)) {
        if (!fits(memories[i], gradient)) refuse(bucket.label);
        matrices.push_back(project(gradient, bucket.loss_scale, memories[i], (bucket.index << 20) + i));
      } else {
        whole.push_back(gradient);
      }
    }
    return std::make_shared<PowerSgdWork>(std::move(matrices), std::move(whole), bucket, comm, options_, staged_);
  }

  void end_step(bool finite) override {
    for (Staged& each : staged_) {
      if (finite) *each.memory = std::move(each.value);
    }
    staged_.clear();
  }

 private:
  using Memories = std::map<size_t, std::vector<Memory>>;  // by bucket

  // Takes over a value whose key is "q", "scale" or "errors", the bucket and the number in it: "q.0.3".
  void load(const std::string& key, const at::Tensor& value, Memories& loaded) const {
    const size_t first = key.find('.'), second = key.find('.', first + 1);
    const auto is_number = [&](size_t begin, size_t end) {
      return begin < end &&
             std::all_of(key.begin() + static_cast<ptrdiff_t>(begin), key.begin() + static_cast<ptrdiff_t>(end),
                         [](char c) { return c >= '0' && c <= '9'; });
    };
    if (second == std::string::npos || !is_number(first + 1, second) || !is_number(second + 1, key.size()) ||
        key.size() > 32) {
      throw ConfigError(name(), ": the state has \"", key, "\", which is of another hook");
    }
    const std::string what = key.substr(0, first);
    auto& memories = loaded[std::stoul(key.substr(first + 1, second - first - 1))];
    const size_t number = std::stoul(key.substr(second + 1));
    if (number >= kMostGradients)
      throw ConfigError(name(), ": the state has \"", key, "\", which no bucket is large enough for");
    if (memories.size() <= number) memories.resize(number + 1);
    if (what == "q") memories[number].q = value.clone();
    if (what == "scale") memories[number].scale = value.item<double>();
    if (what == "errors") memories[number].error = own_error(value);
  }

  // [ranks that saved, …] -> this rank's error.
  at::Tensor own_error(const at::Tensor& errors) const {
    const int ranks = world_ == nullptr ? 1 : world_->size();
    if (errors.size(0) == ranks) return errors[world_ == nullptr ? 0 : world_->rank()].clone();
    return errors.sum(0).div_(ranks);
  }

  static bool fits(const Memory& memory, const at::Tensor& gradient) {
    const int64_t rows = gradient.size(0), columns = gradient.numel() / rows;
    const bool q = !memory.q.defined() || memory.q.size(0) == columns;
    return q && (!memory.error.defined() || memory.error.sizes() == at::IntArrayRef({rows, columns}));
  }

  [[noreturn]] void refuse(const std::string& label) const {
    throw ConfigError(name(), ": the loaded state does not fit ", label,
                      "; resume with the same network and the same bucket size");
  }

  // M with the error, and P = M Q.
  Matrix project(const at::Tensor& gradient, double scale, Memory& memory, size_t stream) const {
    at::Tensor m = as_matrix(gradient).clone();
    if (memory.error.defined()) m.add_(memory.error, scale / memory.scale);
    const int64_t r = std::min({m.size(0), m.size(1), options_.matrix_approximation_rank});
    const bool begins_anew = !memory.q.defined() || !options_.warm_start;
    const at::Tensor q = begins_anew ? random_q(m, r, stream) : memory.q.clone();
    orthogonalize(q, options_.orthogonalization_epsilon);
    const at::Tensor p = at::matmul(m, q);
    return {.gradient = gradient, .m = m, .p = p, .q = q, .memory = &memory};
  }

  // The same on all ranks.
  at::Tensor random_q(const at::Tensor& m, int64_t r, size_t stream) const {
    RandomStream random(options_.random_seed, Purpose::kCompression, static_cast<uint32_t>(step_), stream);
    const at::Tensor q = at::empty({m.size(1), r}, at::kFloat);
    for (float* value = q.mutable_data_ptr<float>(); value < q.const_data_ptr<float>() + q.numel(); ++value) {
      *value = random.normal();
    }
    return q.to(m.options());
  }

  static constexpr size_t kMostGradients = 1 << 20;  // of a bucket

  PowerSgdOptions options_;
  std::shared_ptr<World> world_;  // of the network; null before there is one
  std::weak_ptr<torch::nn::Module> network_;
  int64_t step_ = 0;
  Memories memories_;
  std::vector<Staged> staged_;  // of the step under way
};

}  // namespace

void PowerSgdOptions::check() const {
  if (matrix_approximation_rank < 1 || start_powerSGD_iter < 0 || min_compression_rate <= 0 ||
      orthogonalization_epsilon < 0) {
    throw ConfigError("PowerSGD: rank ", matrix_approximation_rank, ", from step ", start_powerSGD_iter,
                      ", least compression ", min_compression_rate, ", epsilon ", orthogonalization_epsilon,
                      ": the rank is at least 1, the compression above 0, the others not negative");
  }
  if (start_powerSGD_iter < 1 && (use_error_feedback || warm_start)) {
    throw ConfigError("PowerSGD: start_powerSGD_iter is ", start_powerSGD_iter,
                      "; with error feedback or warm start it is at least 1");
  }
}

bool worth_compressing(int64_t n, int64_t m, const PowerSgdOptions& options) {
  const int64_t r = std::min({n, m, options.matrix_approximation_rank});
  return static_cast<double>((n + m) * r) * options.min_compression_rate < static_cast<double>(n * m);
}

void orthogonalize(const at::Tensor& matrix, double epsilon) {
  for (int64_t i = 0; i < matrix.size(1); ++i) {
    at::Tensor column = matrix.narrow(1, i, 1);
    for (int64_t before = 0; before < i; ++before) {
      const at::Tensor other = matrix.narrow(1, before, 1);
      column.sub_(other.mul((other * column).sum()));
    }
    const double norm = column.norm().item<double>();
    if (norm + epsilon > 0) column.div_(norm + epsilon);
  }
}

std::shared_ptr<CommHook> power_sgd_hook(const PowerSgdOptions& options) { return std::make_shared<PowerSgd>(options); }

}  // namespace lockstep::parallel
