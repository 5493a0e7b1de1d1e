#include "job.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <sstream>

#include "lockstep/base/text.h"

namespace lockstep::soak {
namespace {

constexpr size_t kMostFolds = 4;  // under way

void expect_all(const at::Tensor& tensor, double value, const char* what, int step) {
  EXPECT_TRUE(at::equal(tensor, at::full_like(tensor, value))) << what << " of step " << step;
}

// What a rank has at a step: whole numbers, whose sums are exact in any order.
double own(int rank, int step) { return rank + 1 + step; }

}  // namespace

std::string Plan::encode() const { return cat(seed, ' ', victim, ' ', step, ' ', microseconds); }

Plan Plan::decode(const std::string& text) {
  Plan plan;
  std::istringstream(text) >> plan.seed >> plan.victim >> plan.step >> plan.microseconds;
  return plan;
}

Killer::~Killer() {
  if (thread_.joinable()) thread_.join();
}

void Killer::at(int step) {
  if (!is_victim_ || step != plan_.step) return;
  if (plan_.microseconds == 0) raise(SIGKILL);
  thread_ = std::thread([time = plan_.microseconds] {
    std::this_thread::sleep_for(std::chrono::microseconds(time));
    kill(getpid(), SIGKILL);
  });
}

at::Tensor Job::tensor(double value) { return at::full({elements_}, value, at::kFloat); }

double Job::sum_of(int step) const {
  double sum = 0;
  for (int rank = 0; rank < comm_.size(); ++rank) sum += own(rank, step);
  return sum;
}

void Job::step(int number) {
  constexpr std::array<int64_t, 5> kSizes = {0, 1, 1000, 65'537, 300'000};
  elements_ = kSizes[draw_() % kSizes.size()];
  if (folds_.size() > kMostFolds || draw_() % 4 == 0) finish_fold();
  if (number == kSteps - 1) {
    while (!folds_.empty()) finish_fold();
    return comm_.barrier();
  }
  using Kind = void (Job::*)(int);
  constexpr std::array<Kind, 7> kKinds = {&Job::fold,   &Job::fold,     &Job::reduce, &Job::broadcast,
                                          &Job::gather, &Job::messages, &Job::split};
  const size_t kind = draw_() % (kKinds.size() + 1);
  if (kind == kKinds.size()) return comm_.barrier();
  (this->*kKinds[kind])(number);
}

void Job::fold(int step) {
  std::vector<at::Tensor> tensors{tensor(own(comm_.rank(), step)), at::full({77}, own(comm_.rank(), step), at::kFloat)};
  folds_.push_back({comm_.fold(tensors, {.label = cat("step ", step)}), tensors, sum_of(step)});
}

void Job::finish_fold() {
  if (folds_.empty()) return;
  folds_.front().work->wait();
  for (const auto& tensor : folds_.front().tensors) expect_all(tensor, folds_.front().sum, "fold", -1);
  folds_.pop_front();
}

void Job::reduce(int step) {
  const at::Tensor values = tensor(own(comm_.rank(), step));
  comm_.all_reduce(values, comm::ReduceOp::kSum);
  expect_all(values, sum_of(step), "all_reduce", step);
}

void Job::broadcast(int step) {
  const int root = step % comm_.size();
  const at::Tensor values = tensor(own(comm_.rank(), step));
  comm_.broadcast(values, root);
  expect_all(values, own(root, step), "broadcast", step);
}

void Job::gather(int step) {
  const at::Tensor all = comm_.all_gather(tensor(own(comm_.rank(), step)));
  for (int rank = 0; rank < comm_.size(); ++rank) expect_all(all[rank], own(rank, step), "all_gather", step);
}

// Each to the next, in a ring.
void Job::messages(int step) {
  const int next = (comm_.rank() + 1) % comm_.size(), last = (comm_.rank() + comm_.size() - 1) % comm_.size();
  const auto sent = comm_.start(comm::calls::send(tensor(own(comm_.rank(), step)), next, step));
  const at::Tensor values = tensor(0);
  comm_.receive(values, last, step);
  sent->wait();
  expect_all(values, own(last, step), "receive", step);
}

void Job::split(int step) {
  const auto half = comm_.split(comm_.rank() % 2);
  const at::Tensor values = tensor(own(comm_.rank(), step));
  half->all_reduce(values, comm::ReduceOp::kMax);
  expect_all(values, own(half->size() * 2 - 2 + comm_.rank() % 2, step), "all_reduce of a group", step);
}

}  // namespace lockstep::soak
