#include "lockstep/image/device/nvjpeg/resize_kernels.h"

namespace lockstep::image {
namespace {

constexpr int kThreads = 256;  // of a block, each of which makes a pixel; a block's second number is its task's

__global__ void mix_rows(const ResizeTask* tasks) {
  const ResizeTask& task = tasks[blockIdx.y];
  const int64_t pixel = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (pixel >= int64_t{task.used} * task.across.size) return;
  mix_row(task, static_cast<int32_t>(pixel % task.across.size), static_cast<int32_t>(pixel / task.across.size));
}

__global__ void mix_columns(const ResizeTask* tasks) {
  const ResizeTask& task = tasks[blockIdx.y];
  const int64_t pixel = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (pixel >= int64_t{task.width} * task.height) return;
  mix_column(task, static_cast<int32_t>(pixel % task.width), static_cast<int32_t>(pixel / task.width));
}

dim3 grid_of(int64_t pixels, int count) {
  return {static_cast<unsigned>((pixels + kThreads - 1) / kThreads), static_cast<unsigned>(count), 1};
}

}  // namespace

cudaError_t queue_resizes(const ResizeTask* tasks, int count, const MostPixels& most, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  if (most.between > 0) mix_rows<<<grid_of(most.between, count), kThreads, 0, stream>>>(tasks);
  if (const cudaError_t failed = cudaGetLastError(); failed != cudaSuccess) return failed;
  if (most.result > 0) mix_columns<<<grid_of(most.result, count), kThreads, 0, stream>>>(tasks);
  return cudaGetLastError();
}

}  // namespace lockstep::image
