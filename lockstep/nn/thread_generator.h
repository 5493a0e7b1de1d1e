// The random numbers of threads that compute at the same time. libtorch's operations draw from one generator of the
// process, so that what each of several threads gets would depend on which one comes first.
#pragma once

#include <ATen/core/Generator.h>

#include <cstdint>
#include <functional>
#include <optional>

namespace lockstep::nn {

// As long as it exists, operations on the CPU that this thread calls without a generator (dropout, randn_like) draw
// from the one of this object, and oneDNN's kernels are built in turn (kernel_builds.h). It belongs to one thread at a
// time; the innermost counts.
class ThreadGenerator {
 public:
  // `seed` gives the generator's seed, and is called at the first draw alone. `generator`: undefined, or one that goes
  // on; it is where the caller keeps it between scopes.
  ThreadGenerator(at::Generator& generator, std::function<uint64_t()> seed);
  ~ThreadGenerator();
  ThreadGenerator(const ThreadGenerator&) = delete;
  ThreadGenerator& operator=(const ThreadGenerator&) = delete;

  const at::Generator& generator();

 private:
  at::Generator& generator_;
  std::function<uint64_t()> seed_;
  ThreadGenerator* outer_;
  bool was_on_;
};

// The generator that operations on the CPU draw from on this thread.
at::Generator cpu_generator();

}  // namespace lockstep::nn
