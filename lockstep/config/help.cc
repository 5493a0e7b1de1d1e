#include "lockstep/config/help.h"

#include "lockstep/config/commands.h"
#include "lockstep/config/tokenizer.h"

namespace lockstep::config {

std::string general_help() {
  return R"(Lockstep trains deep networks data-parallel and in mixed precision.

Usage: lockstep COMMAND [options]

  train RECIPE                 train mnist, unet or imagenet
  eval RECIPE --load FILE      evaluate a checkpoint
  bench step|allreduce|optimizer|precision|startup|data
                               measure this machine
  inspect FILE                 what a checkpoint holds
  launch PROGRAM ARGS…         any program, under the environment that torchrun sets
  doctor                       what this machine has; a self-test of its transports

`lockstep COMMAND --help` lists a command's options. `lockstep --version` says which this is.

Examples:
  lockstep train mnist --nproc 2 --amp
  lockstep train unet --amp --epochs 10 --out runs/shapes
  lockstep launch --nproc 2 train.py
)";
}

std::string train_help(std::span<const OptionShape> shapes) {
  return cat(R"(Usage: lockstep train RECIPE [options]

RECIPE: mnist, unet or imagenet. What is not said here is left to the recipe.
)",
             describe(shapes), R"(  --config FILE.toml          these options from a file; the command line wins

Examples:
  lockstep train mnist --nproc 2 --amp --epochs 3
  lockstep train imagenet --arch mobilenet_v2 --lanes 8 --nproc 4 --scale-lr linear
  lockstep train unet --resume runs/unet-1
)");
}

std::string eval_help(std::span<const OptionShape> shapes) {
  return cat("Usage: lockstep eval RECIPE --load FILE [options]\n", describe(shapes), R"(
Example:
  lockstep eval mnist --load runs/mnist-1/checkpoints/last.pt --json
)");
}

std::string bench_help() {
  std::string out = "Usage: lockstep bench step|allreduce|optimizer|precision|startup|data [options]\n";
  const auto section = [&out](const char* usage, BenchKind kind) {
    const auto shapes = shapes_of(bench_table(kind));
    const std::string options = describe(shapes);
    out += cat("\n", usage, options.substr(options.find(":\n") + 1));
  };
  section("lockstep bench step: forward, backward, all-reduce and update of a model", BenchKind::kStep);
  section("lockstep bench allreduce: bytes of many sizes between processes", BenchKind::kAllreduce);
  section("lockstep bench optimizer: bytes that updates move, beside the fewest they can", BenchKind::kOptimizer);
  section("lockstep bench startup: from the command to the end of the first step", BenchKind::kStartup);
  section("lockstep bench precision: fp32, bf16 and fp16 on one thread, remembered for --amp auto",
          BenchKind::kPrecision);
  section("lockstep bench data DIR: reading and decoding a folder of images", BenchKind::kData);
  return out;
}

std::string inspect_help(std::span<const OptionShape> shapes) {
  return cat("Usage: lockstep inspect FILE [options]\n\nWhat a .pt file holds: names, types, shapes, hashes.\n",
             describe(shapes));
}

std::string launch_help(std::span<const OptionShape> shapes) {
  return cat(R"(Usage: lockstep launch [options] PROGRAM ARGS…

Starts PROGRAM once a rank with RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT set, as
torchrun does. When one fails the others are stopped. A .py file is run by python3.
)",
             describe(shapes), R"(
Example:
  lockstep launch --nproc 4 train.py --epochs 3
)");
}

std::string doctor_help(std::span<const OptionShape> shapes) {
  return cat(R"(Usage: lockstep doctor [options]

What this machine has: CPU, memory, network interfaces, GPUs, and the versions of what Lockstep builds on, naming any
two that don't fit. Then two processes try each transport for a second or two and check its results.
Ends with 0, or 69 if a transport that is there failed.
)",
             describe(shapes));
}

}  // namespace lockstep::config
