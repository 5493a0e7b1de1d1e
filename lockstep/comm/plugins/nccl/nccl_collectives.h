// The collectives over NCCL. Where sums are to have the same bits at any number of ranks, NCCL moves the data and
// libtorch's kernels reduce them, because the order of NCCL's own sums depends on that number. Else NCCL sums
// floating-point numbers.
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

// Who adds floating-point numbers.
enum class NcclSums { kTree, kNccl };

using NcclWorks = std::vector<c10::intrusive_ptr<c10d::Work>>;

// Queues a collective, whose tensors are on the group's device, on the current stream. Appends NCCL's part of it to
// `works`. Throws what c10d throws.
void run_on_nccl(c10d::ProcessGroupNCCL& group, const Call& call, NcclSums sums, NcclWorks& works);

// Gathers the bytes of all ranks, [ranks, bytes]. `own`, [bytes], are this rank's. All are on the device.
at::Tensor gather_bytes(c10d::ProcessGroupNCCL& group, const at::Tensor& own, NcclWorks& works);

}  // namespace lockstep::comm
