// A training loop of one's own in which rank 1 meets a fault at a chosen moment of its fourth step, or before or after
// them all. It says when, by the clock that monotonic_ns() reads, and rank 0 when it is told of it: by SIGTERM, or by
// an error of the call that it waits in. For fault_matrix_test.cc.
//
//   lockstep launch --nproc-per-node 2 faulty_loop FAULT PHASE BACKEND FOLDER
#include <ATen/ATen.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include "lockstep/amp/mixed_precision.h"
#include "lockstep/base/clock.h"
#include "lockstep/base/run_main.h"
#include "lockstep/checkpoint/state_dict.h"
#include "lockstep/data/tensor_dataset.h"
#include "lockstep/loop/make_loader.h"
#include "lockstep/loop/state.h"
#include "lockstep/optim/rules/adam.h"

using namespace lockstep;

namespace {

constexpr int64_t kSteps = 12, kAt = 3;

// Another process lets this one go on after 3 seconds.
void stop_for_a_while() {
  const std::string words = "sleep 3; kill -CONT " + std::to_string(getpid());
  const char* const arguments[] = {"sh", "-c", words.c_str(), nullptr};
  pid_t ignored = 0;
  posix_spawn(&ignored, "/bin/sh", nullptr, nullptr, const_cast<char* const*>(arguments), environ);
  raise(SIGSTOP);
}

// For a second another process leaves this one a third of its time.
void slow_down() {
  const std::string words =
      "for i in $(seq 66); do kill -STOP $PID && sleep 0.01; kill -CONT $PID && sleep 0.005 || exit 0; done";
  const std::string command = "PID=" + std::to_string(getpid()) + "; " + words;
  const char* const arguments[] = {"sh", "-c", command.c_str(), nullptr};
  pid_t ignored = 0;
  posix_spawn(&ignored, "/bin/sh", nullptr, nullptr, const_cast<char* const*>(arguments), environ);
}

// The kernel's OOM killer comes for this process.
[[noreturn]] void take_all_memory() {
  constexpr size_t kPiece = 4 << 20;
  std::ofstream("/proc/self/oom_score_adj") << 1000;
  for (;;) mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
}

// Somebody takes the port that the launcher has drawn for the first attempt. Whether it was free.
bool take_port() {
  const auto number = [](const char* name) { return std::atoi(std::getenv(name)); };
  if (number("TORCHELASTIC_RESTART_COUNT") != 0) return false;
  static const int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(number("MASTER_PORT")));
  return bind(taken, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(taken, 8) == 0;
}

void fail(const std::string& fault) {
  if (fault == "oom") take_all_memory();
  if (fault == "kill") raise(SIGKILL);
  if (fault == "segv") *static_cast<volatile int*>(nullptr) = 1;
  if (fault == "abort") std::abort();
  if (fault == "exit3") std::_Exit(3);
  if (fault == "exception") throw std::runtime_error("a planted exception");
  if (fault == "stop") raise(SIGSTOP);
  while (fault == "hang") pause();
  if (fault == "stop_and_go") stop_for_a_while();
  if (fault == "slow") slow_down();
  if (fault == "front") kill(getppid(), SIGKILL);
  if (fault == "port") take_port();
}

bool is_rank(const char* wanted) {
  const char* const rank = std::getenv("RANK");
  return rank != nullptr && std::string(rank) == wanted;
}

// Usable in a signal handler.
void say_told() {
  char line[64] = "told at ";
  char* const end = std::to_chars(line + 8, line + sizeof line - 1, monotonic_ns()).ptr;
  *end = '\n';
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, line, static_cast<size_t>(end + 1 - line));
}

void end_told(int signal) {
  say_told();
  ::signal(signal, SIG_DFL);
  raise(signal);
}

class Fault {
 public:
  Fault(std::string fault, std::string phase) : fault_(std::move(fault)), phase_(std::move(phase)) {
    is_victim_ = is_rank("1") && !takes_port_first();
  }
  // A port that is taken before rank 0 listens there is taken by rank 0.
  bool takes_port_first() const { return fault_ == "port" && phase_ == "spawn"; }
  void at_step(int64_t step) { is_near_ = step == kAt; }
  // The rank is in that phase. Any thread.
  void in(const std::string& phase) const {
    if (!is_victim_ || phase != phase_ || met_.exchange(true)) return;
    std::printf("met %s in %s at %lld\n", fault_.c_str(), phase_.c_str(), static_cast<long long>(monotonic_ns()));
    std::fflush(stdout);
    fail(fault_);
  }
  void in_step(const std::string& phase) const {
    if (is_near_) in(phase);
  }

 private:
  std::string fault_, phase_;
  bool is_victim_ = false;
  mutable std::atomic<bool> met_ = false;
  std::atomic<bool> is_near_ = false;
};

class FaultyDataset final : public data::Dataset {
 public:
  FaultyDataset(data::TensorDataset all, const Fault& fault) : all_(std::move(all)), fault_(fault) {}
  int64_t size() const override { return all_.size(); }
  std::vector<data::Field> fields() const override { return all_.fields(); }
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, data::ReadStats& stats) const override {
    fault_.in_step("prefetch");
    all_.read(index, draw, rows, stats);
  }
  std::string fingerprint() const override { return all_.fingerprint(); }
  std::string description() const override { return all_.description(); }

 private:
  data::TensorDataset all_;
  const Fault& fault_;
};

// A part of the saved state.
struct FaultyPart {
  const Fault& fault;
  checkpoint::Value state_dict() const {
    fault.in_step("save");
    return checkpoint::Value(int64_t{1});
  }
  void load_state_dict(const checkpoint::ValueView&) {}
};

std::shared_ptr<data::Dataset> points(const Fault& fault) {
  const at::Tensor number = at::arange(320, at::kDouble);
  return std::make_shared<FaultyDataset>(
      data::TensorDataset(at::stack({number.mul(0.618).frac(), number.mul(0.37).frac()}, 1).to(at::kFloat),
                          number.remainder(2).to(at::kLong)),
      fault);
}

void train(const std::string& backend, const std::string& folder, Fault& fault) {
  fault.in("spawn");
  if (is_rank("1")) usleep(300'000);  // the other waits in the rendezvous
  fault.in("rendezvous");
  const auto world = init({.backend = backend, .timeout = std::chrono::seconds(6)});
  torch::manual_seed(1);
  namespace nn = torch::nn;
  nn::Sequential net(nn::Linear(2, 64), nn::Tanh(), nn::Linear(64, 64), nn::Tanh(), nn::Linear(64, 2));
  optim::AdamW optimizer(net->parameters(), {.lr = 0.01});
  amp::MixedPrecision mixed({net.get()}, {&optimizer}, {});
  parallel::DistributedDataParallel ddp(net.ptr(), world, {.buckets = {.bucket_mb = 0.001, .first_bucket_mb = 0.001}});
  // The last gradient of a backward: the folds of those before are under way.
  net->parameters().front().register_hook([&](const at::Tensor&) { fault.in_step("fold"); });
  data::Loader loader =
      loop::make_loader(*world, points(fault), {.lanes = world->size(), .batch_size = 8, .seed = 1}, {.workers = 1});
  int64_t step = 0;
  FaultyPart part{fault};
  loop::State state(*world, step,
                    {{"model", ddp}, {"optimizer", optimizer}, {"amp", mixed}, {"sampler", loader}, {"part", part}});
  checkpoint::CheckpointStore store(folder + "/checkpoints");
  while (step < kSteps) {
    fault.at_step(step);
    const auto loss_of = [&](const auto& lane) {
      const at::Tensor output = net->forward(lane.data());
      if (output.requires_grad()) output.register_hook([&](const at::Tensor&) { fault.in_step("backward"); });
      return at::cross_entropy_loss(output, lane.target());
    };
    const auto result = ddp.run(step, loader.next(), loss_of, mixed);
    mixed.step(optimizer, result, {});
    mixed.zero_grad(optimizer);
    ++step;
    state.save(store);
    usleep(20'000);
  }
  if (world->rank() == 0) std::printf("weights %s\n", checkpoint::weights_sha256(*net).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 64;
  const auto wall = std::chrono::system_clock::now();
  const auto steady = std::chrono::steady_clock::now();
  Fault fault(argv[1], argv[2]);
  if (fault.takes_port_first() && is_rank("0") && take_port()) {
    std::printf("met port in spawn\n");
    std::fflush(stdout);
  }
  if (is_rank("0")) signal(SIGTERM, end_told);
  return run_main([&] {
    try {
      train(argv[3], argv[4], fault);
    } catch (...) {
      if (is_rank("0")) say_told();
      throw;
    }
    fault.in("exit");
    const auto moved = (std::chrono::system_clock::now() - wall) - (std::chrono::steady_clock::now() - steady);
    if (std::chrono::abs(moved) > std::chrono::minutes(30)) std::printf("the clock was moved\n");
    return 0;
  });
}
