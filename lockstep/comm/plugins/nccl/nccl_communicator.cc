#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/gpus.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/copied_out.h"
#include "lockstep/comm/plugins/nccl/gpu_id.h"
#include "lockstep/comm/plugins/nccl/gpu_of_rank.h"
#include "lockstep/comm/plugins/nccl/nccl_queue.h"
#include "lockstep/comm/plugins/nccl_plugin.h"
#include "lockstep/comm/quiet_c10d.h"
#include "lockstep/comm/text_exchange.h"

namespace lockstep::comm {
namespace {

constexpr uint64_t kSampled = 64;  // of so many calls the first has its signatures gathered and compared

// The parts of the backend that all groups of a world share.
struct NcclWorld {
  at::Device device;
  c10::intrusive_ptr<c10d::Store> store;
  std::shared_ptr<Watch> watch;
  std::shared_ptr<std::atomic<bool>> stopped;
  std::chrono::milliseconds timeout;
  NcclSums sums;
  std::function<void(const std::exception_ptr&)> end_process;
};

const at::Tensor& any_tensor_of(const Call& call) {
  if (!call.tensors.empty()) return call.tensors[0];
  return call.input.defined() ? call.input : call.output;
}

// Keeps the allocator from reusing memory as long as the side stream uses it.
void hold(const Call& call, const c10::cuda::CUDAStream& stream) {
  std::vector<at::Tensor> all = call.tensors;
  all.insert(all.end(), {call.input, call.output, call.fold.square_sums});
  for (const auto& tensor : all) {
    if (!tensor.defined() || !tensor.is_cuda()) continue;
    c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), stream);
  }
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(NcclWorld world, std::unique_ptr<Communicator> host, WatchGroup group)
      : world_(std::move(world)),
        host_(std::move(host)),
        group_(std::move(group)),
        side_(c10::cuda::getStreamFromPool(/*isHighPriority=*/true, world_.device.index())),
        nccl_(connect()),
        queue_(std::make_shared<NcclQueue>(
            world_.device, world_.watch, world_.stopped,
            NcclQueue::Ends{.abort = [nccl = nccl_] { nccl->abort(); }, .process = world_.end_process})) {}

  ~NcclCommunicator() override {
    const QuietC10d quiet;
    try {
      if (std::uncaught_exceptions() > 0) nccl_->abort();
      queue_.reset();
      nccl_->shutdown();
    } catch (const std::exception&) {  // it broke, and whoever waited has been told
    }
  }

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  const char* backend() const override { return "nccl"; }
  std::string describe() const override { return cat("nccl on ", world_.device, ", beside ", host_->describe()); }
  bool same_bits() const override { return world_.sums == NcclSums::kTree; }
  bool shares(const at::Tensor& tensor) const override { return tensor.is_cuda(); }
  void progress() override {
    queue_->check();
    host_->progress();
  }
  void abort(const std::string& reason) noexcept override {
    world_.watch->give_up(reason);
    *world_.stopped = true;
    host_->abort(reason);
  }

 protected:
  std::shared_ptr<Work> begin(Call call) override {
    queue_->check();
    if (call.kind == OpKind::kBarrier) side_.synchronize();
    const at::Tensor& any = any_tensor_of(call);
    if (!any.defined() || !any.is_cuda()) return host_->start(std::move(call));
    if (any.device() != world_.device) {
      throw BugError(call.label(), ": the tensor is on ", any.device(), ", this rank's GPU is ", world_.device);
    }
    const bool message = call.kind == OpKind::kSend || call.kind == OpKind::kReceive;
    return message ? begin_message(std::move(call)) : begin_collective(call);
  }

  std::unique_ptr<Communicator> group(const std::vector<int>& members) override {
    WatchGroup smaller{cat(group_.name, '.', groups_++), {}};
    for (const int member : members) {
      smaller.ranks.push_back(group_.ranks[static_cast<size_t>(member)]);
      smaller.name += cat(member == members.front() ? ':' : ',', smaller.ranks.back());
    }
    if (!members.empty()) world_.watch->announce(smaller);
    auto host = host_->make_group(members);
    if (host == nullptr) return nullptr;
    return std::make_unique<NcclCommunicator>(world_, std::move(host), std::move(smaller));
  }

 private:
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> connect() const {
    const QuietC10d quiet;
    auto options = c10d::ProcessGroupNCCL::Options::create(/*is_high_priority_stream=*/true);
    options->timeout = 2 * world_.timeout + std::chrono::minutes(10);  // c10d's watchdog comes after the queue
    auto store = c10::make_intrusive<c10d::PrefixStore>(group_.name, world_.store);
    return c10::make_intrusive<c10d::ProcessGroupNCCL>(store, rank(), size(), options);
  }

  std::shared_ptr<Work> begin_message(Call call) {
    at::Tensor to;
    if (call.kind == OpKind::kSend) {
      call.input = call.input.cpu();
    } else {
      to = std::exchange(call.output, at::empty(call.output.sizes(), call.output.options().device(at::kCPU)));
    }
    const at::Tensor from = call.output;
    return std::make_shared<CopiedOut>(host_->start(std::move(call)), from, to);
  }

  std::shared_ptr<Work> begin_collective(const Call& call) {
    auto flight =
        std::make_shared<NcclFlight>(WatchedCall{.group = group_,
                                                 .number = ++calls_,
                                                 .signature = signature_of(call),
                                                 .label = call.label(),
                                                 .timeout = call.timeout.count() > 0 ? call.timeout : world_.timeout});
    const c10::cuda::CUDAGuard on_device(world_.device);
    flight->ready.record(at::cuda::getCurrentCUDAStream());
    flight->ready.block(side_);
    const c10::cuda::CUDAStreamGuard on_side(side_);
    hold(call, side_);
    queue_->push(flight);
    try {
      if (calls_ % kSampled == 1) gather_signatures(*flight);
      run_on_nccl(*nccl_, call, world_.sums, flight->parts);
      flight->end.record(side_);
      flight->stage = NcclFlight::Stage::kQueued;
    } catch (const c10::Error& error) {
      flight->stage = NcclFlight::Stage::kGivenUp;
      queue_->check();
      const std::string text = error.what_without_backtrace();
      throw CommError("rank ", group_.ranks[static_cast<size_t>(rank())], ": ", call.label(), ", call #", calls_ - 1,
                      ": NCCL: ", first_line(text), "; NCCL_DEBUG=INFO says more");
    } catch (...) {
      flight->stage = NcclFlight::Stage::kGivenUp;
      throw;
    }
    return std::make_shared<NcclWork>(queue_, std::move(flight));
  }

  // Gathers the ranks' signatures on the device; the queue compares them when they have reached the host.
  void gather_signatures(NcclFlight& flight) {
    const auto pinned = at::TensorOptions(at::kByte).pinned_memory(true);
    const at::Tensor own = at::empty({static_cast<int64_t>(sizeof(Signature))}, pinned);
    std::memcpy(own.mutable_data_ptr(), &flight.call.signature, sizeof(Signature));
    const at::Tensor all = gather_bytes(*nccl_, own.to(world_.device, /*non_blocking=*/true), flight.parts);
    flight.signatures = at::empty(all.sizes(), pinned);
    flight.signatures.copy_(all, /*non_blocking=*/true);
  }

  NcclWorld world_;
  std::unique_ptr<Communicator> host_;
  WatchGroup group_;
  c10::cuda::CUDAStream side_;
  c10::intrusive_ptr<c10d::ProcessGroupNCCL> nccl_;
  std::shared_ptr<NcclQueue> queue_;  // works may outlive the group
  uint64_t calls_ = 0, groups_ = 0;
};

at::Device device_of(const NcclOptions& options) {
  const int visible = at::cuda::device_count();
  if (options.gpu >= visible) {
    throw ConfigError("backend nccl: rank ", options.rank, ": there is no cuda:", options.gpu, " among ", visible);
  }
  const RankPlace& place = options.ranks.at(static_cast<size_t>(options.rank));
  const auto here = static_cast<int>(ranks_of_node(options.ranks, place.node).size());
  const int gpu = options.gpu >= 0 ? options.gpu : gpu_of_rank(options.rank, place.local_rank, here, visible);
  return {at::kCUDA, static_cast<c10::DeviceIndex>(gpu)};
}

// Only where the user has not said otherwise. c10d's own watchdog is not to end the process, nor to hold it for dumps:
// the queue ends calls.
void set_environment(const std::string& interfaces) {
  if (!interfaces.empty()) setenv("NCCL_SOCKET_IFNAME", ('=' + interfaces).c_str(), 0);
  for (const char* name : {"ASYNC_ERROR_HANDLING", "ENABLE_MONITORING", "DUMP_ON_TIMEOUT", "WAIT_TIMEOUT_DUMP_MILSEC",
                           "PROPAGATE_ERROR", "RETHROW_CUDA_ERRORS"}) {
    setenv(cat("TORCH_NCCL_", name).c_str(), "0", 0);
  }
}

std::unique_ptr<Communicator> make_communicator(NcclOptions& options) {
  const at::Device device = device_of(options);
  set_environment(options.interfaces);
  at::globalContext().lazyInitDevice(at::kCUDA);
  WatchGroup all{"nccl", {}};
  for (size_t k = 0; k < options.ranks.size(); ++k) all.ranks.push_back(static_cast<int>(k));
  const auto notes = c10::make_intrusive<c10d::PrefixStore>("notes", options.store);
  {
    Bulletin bulletin(notes, options.rank);
    bulletin.announce();
    bulletin.announce(all);
  }
  const std::string id = cat(id_of_gpu(*at::cuda::getDeviceProperties(device.index())), nccl_host());
  const auto ids = gather_texts(*options.host, id);  // then all notes are there, too
  std::vector<UsedGpu> gpus;
  for (size_t k = 0; k < ids.size(); ++k) gpus.push_back({.id = ids[k], .host = options.ranks.at(k).host});
  require_gpus_of_their_own(gpus);
  const auto stopped = std::make_shared<std::atomic<bool>>(false);
  Watch::Options watch{.rank = options.rank, .ranks = options.ranks, .board = options.board, .warn = options.warn};
  watch.timeout_name = options.timeout_name;
  watch.stop_waits = [stopped] { *stopped = true; };
  NcclWorld world{device,
                  options.store->clone(),
                  std::make_shared<Watch>(std::move(watch), std::make_unique<Bulletin>(notes, options.rank)),
                  stopped,
                  options.timeout,
                  options.same_bits ? NcclSums::kTree : NcclSums::kNccl,
                  options.end_process};
  return std::make_unique<NcclCommunicator>(std::move(world), std::move(options.host), std::move(all));
}

}  // namespace
}  // namespace lockstep::comm

lockstep::comm::Communicator* lockstep_make_nccl_communicator(lockstep::comm::NcclOptions& options) {
  return lockstep::comm::make_communicator(options).release();
}

const char* lockstep_plugin_build() { return LOCKSTEP_PLUGIN_BUILD; }
