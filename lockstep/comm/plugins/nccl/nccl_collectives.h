// A call's steps on NCCL. Data are moved by NCCL and combined by libtorch's kernels, for NCCL's own sums have an order
// that depends on the number of ranks.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <vector>

#include "lockstep/comm/call.h"

namespace c10d {
class ProcessGroupNCCL;
class Work;
}  // namespace c10d

namespace lockstep::comm {

using NcclWorks = std::vector<c10::intrusive_ptr<c10d::Work>>;

// Queues a collective with tensors on the group's device behind what the current stream has; afterwards the stream has
// all of it, and `works` NCCL's part. Throws what c10d throws.
void run_on_nccl(c10d::ProcessGroupNCCL& group, const Call& call, NcclWorks& works);

// [ranks, bytes]: what every rank passes, `own` being [bytes] on the device.
at::Tensor gather_bytes(c10d::ProcessGroupNCCL& group, const at::Tensor& own, NcclWorks& works);

}  // namespace lockstep::comm
