// LeNet whose weights parameter servers keep, for workers that come and go, each a process of its own. The server:
//
//   example_parameter_server serve 127.0.0.1:4000 4 async 8
//
// with four workers before the first step, of which none is more than eight steps ahead of the slowest one (or `sync`).
// A worker, its number of so many, the servers, the steps, and a folder of MNIST's files (else digits drawn on the
// spot):
//
//   example_parameter_server work 0 4 127.0.0.1:4000 100 [DIR]
//
// Several servers share the weights: `serve 127.0.0.1:4001 4 async 8 1 2` is the second of two, which workers know as
// 127.0.0.1:4000,127.0.0.1:4001.
#include "lockstep/parallel/server/parameter_server.h"

#include <ATen/Parallel.h>
#include <ATen/ops/cross_entropy_loss.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/split_list.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/read_batch.h"
#include "lockstep/datasets/drawn/synthetic_digits.h"
#include "lockstep/datasets/mnist.h"
#include "lockstep/models/lenet.h"
#include "lockstep/parallel/server/served_parameters.h"
#include "lockstep/rendezvous/place/address.h"

namespace data = lockstep::data;
namespace datasets = lockstep::datasets;
namespace parallel = lockstep::parallel;

lockstep::models::LeNet make_net() { return lockstep::models::LeNet(lockstep::models::LeNetOptions{}, /*seed=*/1); }

int serve(const std::vector<std::string>& words) {
  const auto word = [&](size_t i, const char* otherwise) { return words.size() > i ? words[i] : otherwise; };
  const auto net = make_net();
  const auto address = lockstep::rendezvous::parse_address("tcp://" + words.at(0));
  const bool synchronous = word(2, "sync") == "sync";
  // Asynchronous steps bring a momentum of their own (Mitliagkas et al., "Asynchrony begets momentum", 2016).
  const double momentum = synchronous ? 0.9 : 0;
  parallel::ParameterServer server(net->parameters(), {.server = std::stoi(word(4, "0")),
                                                       .servers = std::stoi(word(5, "1")),
                                                       .host = address.host,
                                                       .port = address.port,
                                                       .workers = std::stoi(word(1, "1")),
                                                       .synchronous = synchronous,
                                                       .staleness = std::stoi(word(3, "4")),
                                                       .optimizer_options = {{"lr", 0.05}, {"momentum", momentum}}});
  std::fprintf(stderr, "serving at %s\n", server.address().c_str());
  const parallel::ServerReport report = server.serve();
  std::printf("%ld updates of %d workers, %d lost, staleness %ld, %ld late\n", static_cast<long>(report.updates),
              report.workers, report.lost, static_cast<long>(report.most_staleness), static_cast<long>(report.late));
  return 0;
}

double accuracy_on(lockstep::models::LeNet& net, const data::Dataset& test) {
  const c10::InferenceMode inference;
  int64_t right = 0;
  for (int64_t i = 0; i < test.size(); i += 500) {
    std::vector<int64_t> indices;
    for (int64_t k = i; k < std::min(test.size(), i + 500); ++k) indices.push_back(k);
    const data::Batch batch = data::read_batch(test, indices);
    right += net->forward(batch.data()).argmax(1).eq(batch.target()).sum().item<int64_t>();
  }
  return static_cast<double>(right) / static_cast<double>(test.size());
}

int work(const std::vector<std::string>& words) {
  const int worker = std::stoi(words.at(0)), workers = std::stoi(words.at(1));
  const int64_t steps = std::stoll(words.at(3));
  const data::Splits digits =
      words.size() > 4 ? datasets::open_mnist(words[4]) : datasets::synthetic_digits({.seed = 1});
  auto net = make_net();
  parallel::ServedParameters served(net->parameters(), lockstep::split_list(words.at(2)), {.worker = worker});
  const data::LaneSampler sampler(
      {.dataset_size = digits.train->size(), .lanes = workers, .batch_size = 16, .seed = 1});
  data::Loader loader(digits.train, sampler, {.first_lane = worker, .last_lane = worker + 1});
  double sum = 0;
  for (int64_t step = 1; step <= steps; ++step) {
    served.pull();
    const data::StepBatch batch = loader.next();
    const at::Tensor loss = at::cross_entropy_loss(net->forward(batch.lanes[0].data()), batch.lanes[0].target());
    loss.backward();
    served.push(batch.lanes[0].size());
    sum += loss.item<double>();
    if (step % 10 == 0) std::printf("step %ld: loss %.9g\n", static_cast<long>(step), sum / 10), sum = 0;
    std::fflush(stdout);
  }
  served.pull();
  if (worker == 0) std::printf("accuracy %.4f\n", accuracy_on(net, *digits.test));
  return 0;
}

int main(int argc, char** argv) {
  at::set_num_threads(1);
  const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
  const std::string role = argc > 1 ? argv[1] : "";
  try {
    if (role == "serve" && !words.empty()) return serve(words);
    if (role == "work" && words.size() >= 4) return work(words);
  } catch (const lockstep::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return error.exit_code();
  }
  std::fprintf(stderr,
               "usage: example_parameter_server serve HOST:PORT WORKERS sync|async STALENESS [SERVER SERVERS]\n"
               "       example_parameter_server work NUMBER WORKERS HOST:PORT,… STEPS [DIR]\n");
  return 2;
}
