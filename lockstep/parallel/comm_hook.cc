#include "lockstep/parallel/comm_hook.h"

#include "lockstep/base/error.h"

namespace lockstep::parallel {
namespace {

class CompressHook final : public CommHook {
 public:
  explicit CompressHook(at::ScalarType wire) : wire_(wire) {}
  std::string name() const override { return cat("compression to ", c10::toString(wire_)); }
  bool same_bits() const override { return true; }
  std::optional<at::ScalarType> wire() const override { return wire_; }
  std::shared_ptr<comm::Work> begin(const GradBucket& bucket, comm::Communicator& comm) override {
    const bool narrower = bucket.gradients[0].scalar_type() == at::kFloat;
    return comm.fold(
        bucket.gradients,
        {.label = bucket.label, .step = bucket.step, .wire = narrower ? std::optional(wire_) : std::nullopt});
  }

 private:
  at::ScalarType wire_;
};

class FunctionHook final : public CommHook {
 public:
  FunctionHook(std::string name, HookFunction begin) : name_(std::move(name)), begin_(std::move(begin)) {}
  std::string name() const override { return name_; }
  std::shared_ptr<comm::Work> begin(const GradBucket& bucket, comm::Communicator& comm) override {
    auto work = begin_(bucket, comm);
    if (work == nullptr) throw BugError("the communication hook ", name_, " returned no work for ", bucket.label);
    return work;
  }

 private:
  std::string name_;
  HookFunction begin_;
};

}  // namespace

int CommHook::owner_of(const at::Tensor& /*parameter*/) const {
  throw BugError("the hook ", name(), " has no owners of parameters");
}

void CommHook::load_state_dict(const State& state) {
  if (!state.empty())
    throw ConfigError("the communication hook ", name(), " keeps no state, and the checkpoint has one");
}

std::shared_ptr<CommHook> compress_hook(at::ScalarType wire) {
  if (wire != at::kHalf && wire != at::kBFloat16) {
    throw ConfigError("compression of gradients to ", c10::toString(wire), ": it is to Half or BFloat16");
  }
  return std::make_shared<CompressHook>(wire);
}

std::shared_ptr<CommHook> make_hook(std::string name, HookFunction begin) {
  return std::make_shared<FunctionHook>(std::move(name), std::move(begin));
}

}  // namespace lockstep::parallel
