#include "lockstep/parallel/push_hook.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"
#include "lockstep/optim/memory_order.h"
#include "lockstep/parallel/shard_plan.h"
#include "lockstep/parallel/sync_group.h"

namespace lockstep::parallel {
namespace {

constexpr const char* kStranger =
    "push_hook: a trained parameter that no rank keeps; it gets those of the optimizer, which are to be all that the "
    "network trains: freeze others (requires_grad_(false))";

// The gradients of a bucket that one rank gets: they travel as one row.
struct Parcel {
  std::vector<at::Tensor> gradients;
  at::Tensor row;
  at::Tensor rows = {};  // of all ranks, where the owner adds them itself
  std::shared_ptr<comm::Work> work = {};
};

class PushWork final : public comm::Work {
 public:
  // `own`: the parcel that this rank gets; -1: none.
  PushWork(std::vector<Parcel> parcels, std::ptrdiff_t own) : parcels_(std::move(parcels)), own_(own) {}

  bool done() override {
    if (is_done_) return true;
    if (!std::ranges::all_of(parcels_, [](const Parcel& parcel) { return parcel.work->done(); })) return false;
    finish();
    return true;
  }
  bool wait_for(std::chrono::nanoseconds time) override {
    const int64_t end = monotonic_ns() + time.count();
    for (const Parcel& parcel : parcels_) {
      const std::chrono::nanoseconds left(std::max<int64_t>(end - monotonic_ns(), 0));
      if (!parcel.work->wait_for(left)) return false;
    }
    finish();
    return true;
  }
  void wait() override {
    for (const Parcel& parcel : parcels_) parcel.work->wait();
    finish();
  }
  std::chrono::nanoseconds elapsed() const override {
    std::chrono::nanoseconds most(0);
    for (const Parcel& parcel : parcels_) most = std::max(most, parcel.work->elapsed());
    return most;
  }

 private:
  void finish() {
    if (std::exchange(is_done_, true) || own_ < 0) return;
    const c10::AutoGradMode no_grad(false);
    Parcel& own = parcels_[static_cast<size_t>(own_)];
    if (own.rows.defined()) own.row.copy_(sum_rows(std::exchange(own.rows, {})));
    if (own.gradients.size() == 1) return;  // its row is the gradient's memory
    int64_t first = 0;
    for (const at::Tensor& gradient : own.gradients) {
      optim::memory_of(gradient).copy_(own.row.narrow(0, first, gradient.numel()));
      first += gradient.numel();
    }
  }

  std::vector<Parcel> parcels_;
  std::ptrdiff_t own_;
  bool is_done_ = false;
};

class PushHook final : public CommHook {
 public:
  PushHook(const std::vector<at::Tensor>& parameters, const std::vector<int>& owners) : all_owners_(owners) {
    if (parameters.size() != owners.size()) {
      throw ConfigError("push_hook: ", owners.size(), " owners of ", parameters.size(), " parameters");
    }
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto [place, is_new] = owners_.emplace(parameters[i].unsafeGetTensorImpl(), owners[i]);
      if (!is_new && place->second != owners[i]) {
        throw ConfigError("push_hook: parameter ", i,
                          " is also an earlier one, of another owner; name a tied one once");
      }
      if (parameters[i].is_complex()) owners_of_complex_[parameters[i].const_data_ptr()] = owners[i];
    }
  }

  std::string name() const override { return "push to parameter servers"; }
  bool same_bits() const override { return true; }
  bool divides() const override { return true; }
  void attach(std::shared_ptr<World> world, const std::shared_ptr<torch::nn::Module>& /*network*/) override {
    check_owners("push_hook", all_owners_, world->communicator());
  }
  int owner_of(const at::Tensor& parameter) const override {
    if (const auto own = owners_.find(parameter.unsafeGetTensorImpl()); own != owners_.end()) return own->second;
    const auto own = owners_of_complex_.find(parameter.const_data_ptr());
    if (own == owners_of_complex_.end()) throw ConfigError(kStranger);
    return own->second;
  }

  std::shared_ptr<comm::Work> begin(const GradBucket& bucket, comm::Communicator& comm) override {
    std::map<int, Parcel> by_owner;
    for (size_t i = 0; i < bucket.gradients.size(); ++i) {
      if (bucket.gradients[i].numel() == 0) continue;
      by_owner[owner_of(bucket.parameters[i])].gradients.push_back(bucket.gradients[i]);
    }
    std::vector<Parcel> parcels;
    std::ptrdiff_t own = -1;
    for (auto& [owner, parcel] : by_owner) {
      std::vector<at::Tensor> rows;
      for (const at::Tensor& gradient : parcel.gradients) rows.push_back(optim::memory_of(gradient));
      parcel.row = rows.size() == 1 ? rows[0] : at::cat(rows);
      // Over shared memory all ranks add. A network's reduce would give all of them the sum: there the owner adds.
      const bool adds_together = comm.has_views();
      if (!adds_together && owner == comm.rank()) {
        parcel.rows = at::empty({comm.size(), parcel.row.numel()}, parcel.row.options());
      }
      comm::Call call = adds_together ? comm::calls::reduce(parcel.row, owner)
                                      : comm::calls::gather(parcel.row, parcel.rows, owner, comm.size());
      call.what = cat("push of ", bucket.label, " to rank ", owner);
      parcel.work = comm.start(std::move(call));
      if (owner == comm.rank()) own = std::ssize(parcels);
      parcels.push_back(std::move(parcel));
    }
    return std::make_shared<PushWork>(std::move(parcels), own);
  }

 private:
  std::vector<int> all_owners_;  // as they were given
  std::unordered_map<const c10::TensorImpl*, int> owners_;
  std::unordered_map<const void*, int> owners_of_complex_;  // by memory: a bucket has their real views
};

}  // namespace

std::shared_ptr<CommHook> push_hook(const std::vector<at::Tensor>& parameters, const std::vector<int>& owners) {
  return std::make_shared<PushHook>(parameters, owners);
}

}  // namespace lockstep::parallel
