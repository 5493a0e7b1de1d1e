// What `bench data` and `bench step --data` load: whatever training opens.
#pragma once

#include <memory>

#include "lockstep/apps/commands/bench_data_options.h"
#include "lockstep/data/dataset.h"

namespace lockstep::worker {

// Opens the training part of what lies at options.path as the recipe that trains on it does: MNIST, images with masks,
// else images with classes; the latter two by --augment, or `standard`. `threads` may be used to open it. Throws
// DataError as the recipes do, and ConfigError for options that MNIST's digits don't have. With `as_bytes` pictures
// come as bytes with a table, as where a GPU trains (data/byte_tables.h); with `encoded` besides, JPEGs come as their
// files are, for a device to decode.
std::shared_ptr<const data::Dataset> open_bench_source(const apps::BenchDataOptions& options, int threads,
                                                       bool as_bytes = false, bool encoded = false);

}  // namespace lockstep::worker
