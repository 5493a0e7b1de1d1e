// JpegDecoder by nvJPEG: the plug-in liblockstep_nvjpeg.so.
//
// Pictures are decoded whole, in parts of a batch whose pixels take at most kDecodedBytes. A part's pictures go to the
// GPU's JPEG engines where it has them (data centers' since the A100), in one call; what these don't take, such as
// progressive JPEGs, to its cores and the CPU in another, and one after the other where that is refused. Plans and
// weights go to the device in one copy, and two kernels make the results. All is queued on the current stream; its
// memory is libtorch's, given back in the stream's order, but for nvJPEG's own.
//
// nvJPEG copies by way of memory of its states, of which nothing says when they may be used again: each is used
// again when the device has passed what it was used for.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/image/device/jpeg_decoder.h"
#include "lockstep/image/device/nvjpeg/nvjpeg_library.h"
#include "lockstep/image/device/nvjpeg/resize_kernels.h"
#include "lockstep/image/device/plan_task.h"

extern "C" const char* lockstep_plugin_build();

namespace lockstep::image {
namespace {

constexpr size_t kMostAtOnce = 256;  // pictures of a part
constexpr int kMostThreads = 8;      // of the CPU, for what nvJPEG does there
constexpr int64_t kAlignment = 256;  // bytes: of a picture's pixels
constexpr nvjpegOutputFormat_t kFormat = NVJPEG_OUTPUT_RGBI;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

int64_t decoded_bytes(const PictureRow& picture) {
  return aligned(int64_t{3} * picture.stored.width * picture.stored.height);
}

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw IoError("decoding on the device: ", what, " failed (", cudaGetErrorString(status), "); use --decode host");
}

// nvJPEG's memory: of the device, which is counted, and pinned. Freeing waits for the device: nobody says on which
// stream memory was last used. nvjpegCreateExV2 refuses to start with one allocator of the two.
class CountedMemory {
 public:
  nvjpegDevAllocatorV2_t* allocator() { return &allocator_; }
  nvjpegPinnedAllocatorV2_t* pinned_allocator() { return &pinned_allocator_; }
  int64_t bytes() const { return bytes_; }

 private:
  static int take(void* self, void** memory, size_t size, cudaStream_t /*stream*/) {
    cudaError_t status = cudaMalloc(memory, size);
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // forgets it
      try {
        c10::cuda::CUDACachingAllocator::emptyCache();  // libtorch may keep all that is free
      } catch (...) {
        return static_cast<int>(status);
      }
      status = cudaMalloc(memory, size);
    }
    if (status == cudaSuccess) static_cast<CountedMemory*>(self)->bytes_ += static_cast<int64_t>(size);
    return static_cast<int>(status);
  }
  static int give_back(void* self, void* memory, size_t size, cudaStream_t /*stream*/) {
    const cudaError_t status = cudaFree(memory);
    if (status == cudaSuccess) static_cast<CountedMemory*>(self)->bytes_ -= static_cast<int64_t>(size);
    return static_cast<int>(status);
  }
  static int take_pinned(void* /*self*/, void** memory, size_t size, cudaStream_t /*stream*/) {
    return static_cast<int>(cudaHostAlloc(memory, size, cudaHostAllocDefault));
  }
  static int give_back_pinned(void* /*self*/, void* memory, size_t /*size*/, cudaStream_t /*stream*/) {
    return static_cast<int>(cudaFreeHost(memory));
  }

  std::atomic<int64_t> bytes_ = 0;
  nvjpegDevAllocatorV2_t allocator_{.dev_malloc = take, .dev_free = give_back, .dev_ctx = this};
  nvjpegPinnedAllocatorV2_t pinned_allocator_{
      .pinned_malloc = take_pinned, .pinned_free = give_back_pinned, .pinned_ctx = this};
};

class NvjpegDecoder final : public JpegDecoder {
 public:
  explicit NvjpegDecoder(int gpu) : gpu_(static_cast<c10::DeviceIndex>(gpu)), nvjpeg_(open_nvjpeg()) {
    const c10::cuda::CUDAGuard on_gpu(gpu_);
    try {
      check(start(cores_, NVJPEG_BACKEND_GPU_HYBRID), "starting");
      check(nvjpeg_.create_state(cores_.handle, &one_.state), "making a state");
      start_engines();
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~NvjpegDecoder() override { destroy(); }
  NvjpegDecoder(const NvjpegDecoder&) = delete;
  NvjpegDecoder& operator=(const NvjpegDecoder&) = delete;

  std::string text() const override {
    return cat("nvJPEG ", nvjpeg_.version(), has_engines() ? " with the GPU's JPEG engines" : "");
  }
  int64_t device_bytes() const override { return memory_.bytes(); }

  std::vector<int64_t> decode(std::span<const PlannedJpeg> pictures, const at::Tensor& images) override {
    const c10::cuda::CUDAGuard on_gpu(gpu_);
    std::vector<int64_t> refused;
    while (!pictures.empty()) {
      const size_t count = count_of_part(pictures);
      decode_part(pictures.first(count), images, refused);
      pictures = pictures.subspan(count);
    }
    return refused;
  }

 private:
  struct State {
    nvjpegJpegState_t state = nullptr;
    size_t pictures = 0;       // that a batch's state was made for
    at::cuda::CUDAEvent used;  // behind its last use
  };
  // Decodes batches in one way of nvJPEG's.
  struct Way {
    nvjpegHandle_t handle = nullptr;
    std::array<State, 2> states;  // used in turn
    size_t next = 0;
  };
  // A part's pixels, and where each picture's are.
  struct Part {
    std::span<const PlannedJpeg> pictures;
    at::Tensor pixels = {};
    std::vector<nvjpegImage_t> places = {};
    std::vector<bool> decoded = {};
  };

  bool has_engines() const { return engines_.handle != nullptr; }

  // The GPU may have none, or the driver leaves them out, as in containers without its video part.
  void start_engines() {
    try {
      if (start(engines_, NVJPEG_BACKEND_HARDWARE) != NVJPEG_STATUS_SUCCESS) return;
      check(nvjpeg_.create_stream(engines_.handle, &header_), "making a stream");
    } catch (const IoError&) {
      destroy(engines_);
    }
  }

  // Leaves the way without a handle if it can't be started.
  nvjpegStatus_t start(Way& way, nvjpegBackend_t backend) {
    constexpr unsigned kInterpolate = NVJPEG_FLAGS_UPSAMPLING_WITH_INTERPOLATION;  // of chroma, as libjpeg does
    const nvjpegStatus_t status =
        nvjpeg_.create(backend, memory_.allocator(), memory_.pinned_allocator(), kInterpolate, &way.handle);
    if (status != NVJPEG_STATUS_SUCCESS) {
      way.handle = nullptr;
      return status;
    }
    for (State& state : way.states) check(nvjpeg_.create_state(way.handle, &state.state), "making a state");
    return status;
  }

  // The first pictures, at least one, whose pixels take no more than kDecodedBytes before and between the passes.
  static size_t count_of_part(std::span<const PlannedJpeg> pictures) {
    int64_t decoded = 0, between = 0;
    size_t count = 0;
    for (; count < std::min(pictures.size(), kMostAtOnce); ++count) {
      decoded += decoded_bytes(pictures[count].picture);
      between += aligned(between_bytes(pictures[count].picture));
      if (count > 0 && std::max(decoded, between) > kDecodedBytes) break;
    }
    return count;
  }

  at::TensorOptions on_gpu() const { return at::TensorOptions(at::kByte).device(at::kCUDA, gpu_); }

  void decode_part(std::span<const PlannedJpeg> pictures, const at::Tensor& images, std::vector<int64_t>& refused) {
    Part part{.pictures = pictures, .decoded = std::vector<bool>(pictures.size(), true)};
    int64_t bytes = 0;
    for (const PlannedJpeg& each : pictures) bytes += decoded_bytes(each.picture);
    part.pixels = at::empty({bytes}, on_gpu());
    uint8_t* place = part.pixels.mutable_data_ptr<uint8_t>();
    for (const PlannedJpeg& each : pictures) {
      nvjpegImage_t to{};
      to.channel[0] = place;
      to.pitch[0] = size_t{3} * static_cast<size_t>(each.picture.stored.width);
      part.places.push_back(to);
      place += decoded_bytes(each.picture);
    }
    auto [by_engines, others] = divide(part);
    if (!by_engines.empty() && !decode_at_once(engines_, part, by_engines)) {
      others.insert(others.end(), by_engines.begin(), by_engines.end());
    }
    if (!others.empty() && !decode_at_once(cores_, part, others)) decode_each(part, others);
    for (size_t i = 0; i < pictures.size(); ++i) {
      if (!part.decoded[i]) refused.push_back(pictures[i].place);
    }
    resize(part, images);
  }

  // The numbers of the pictures that the engines take, and of the others.
  std::pair<std::vector<size_t>, std::vector<size_t>> divide(const Part& part) const {
    std::vector<size_t> by_engines, others;
    for (size_t i = 0; i < part.pictures.size(); ++i) {
      const auto file = part.pictures[i].picture.file;
      int refused = 1;
      const bool takes = has_engines() &&
                         nvjpeg_.parse(engines_.handle, file.data(), file.size(), /*save_metadata=*/0,
                                       /*save_stream=*/0, header_) == NVJPEG_STATUS_SUCCESS &&
                         nvjpeg_.batch_takes(engines_.handle, header_, &refused) == NVJPEG_STATUS_SUCCESS &&
                         refused == 0;
      (takes ? by_engines : others).push_back(i);
    }
    return {by_engines, others};
  }

  // Returns false if nvJPEG refuses one of the pictures, without saying which.
  bool decode_at_once(Way& way, Part& part, const std::vector<size_t>& numbers) {
    State& state = way.states[way.next];
    way.next = (way.next + 1) % way.states.size();
    state.used.synchronize();
    const auto stream = c10::cuda::getCurrentCUDAStream(gpu_);
    const size_t count = numbers.size();
    if (state.pictures != count) {
      state.pictures = 0;
      const int threads = std::clamp(usable_cores(), 1, kMostThreads);
      check(nvjpeg_.initialize_batch(way.handle, state.state, static_cast<int>(count), threads, kFormat),
            "preparing a batch");
      state.pictures = count;
    }
    std::vector<const unsigned char*> files;
    std::vector<size_t> lengths;
    std::vector<nvjpegImage_t> places;
    for (const size_t i : numbers) {
      files.push_back(part.pictures[i].picture.file.data());
      lengths.push_back(part.pictures[i].picture.file.size());
      places.push_back(part.places[i]);
    }
    const nvjpegStatus_t status =
        nvjpeg_.decode_batch(way.handle, state.state, files.data(), lengths.data(), places.data(), stream.stream());
    state.used.record(stream);
    if (status == NVJPEG_STATUS_SUCCESS) return true;
    state.pictures = 0;
    if (!is_about_the_picture(status)) check(status, "decoding a batch");
    return false;
  }

  void decode_each(Part& part, const std::vector<size_t>& numbers) {
    const auto stream = c10::cuda::getCurrentCUDAStream(gpu_);
    for (const size_t i : numbers) {
      const auto file = part.pictures[i].picture.file;
      one_.used.synchronize();
      const nvjpegStatus_t status = nvjpeg_.decode(cores_.handle, one_.state, file.data(), file.size(), kFormat,
                                                   &part.places[i], stream.stream());
      one_.used.record(stream);
      part.decoded[i] = status == NVJPEG_STATUS_SUCCESS;
      if (!part.decoded[i] && !is_about_the_picture(status)) check(status, "decoding");
    }
  }

  // The tasks and the tables behind them are made in pinned memory, with the device's addresses, and copied at once.
  void resize(const Part& part, const at::Tensor& images) {
    const auto stream = c10::cuda::getCurrentCUDAStream(gpu_);
    const auto room = static_cast<int64_t>(part.pictures.size() * sizeof(ResizeTask));
    int64_t bytes = aligned(room), between_total = 0;
    for (const PlannedJpeg& each : part.pictures) {
      bytes += aligned(std::ssize(each.picture.tables));
      between_total += aligned(between_bytes(each.picture));
    }
    const at::Tensor host = at::empty({bytes}, at::TensorOptions(at::kByte).pinned_memory(true));
    const at::Tensor device = at::empty({bytes}, on_gpu());
    const at::Tensor between = at::empty({between_total}, on_gpu());
    auto* const from = host.mutable_data_ptr<uint8_t>();
    auto* const to = device.mutable_data_ptr<uint8_t>();
    auto* row = between.mutable_data_ptr<uint8_t>();
    MostPixels most;
    int count = 0;
    int64_t at = aligned(room);
    for (size_t i = 0; i < part.pictures.size(); ++i) {
      if (!part.decoded[i]) continue;
      const PictureRow& picture = part.pictures[i].picture;
      const at::Tensor image = images.select(0, part.pictures[i].place);
      const DecodedPixels decoded{part.places[i].channel[0], 3, static_cast<int64_t>(part.places[i].pitch[0])};
      const ResizeTask task =
          resize_task(picture, decoded, to + at, row,
                      {image.mutable_data_ptr<uint8_t>(), image.stride(2), image.stride(1), image.stride(0)});
      std::memcpy(from + static_cast<size_t>(count++) * sizeof(task), &task, sizeof(task));
      std::memcpy(from + at, picture.tables.data(), picture.tables.size());
      at += aligned(std::ssize(picture.tables));
      row += aligned(between_bytes(picture));
      most.between = std::max(most.between, int64_t{task.used} * task.across.size);
      most.result = std::max(most.result, int64_t{task.width} * task.height);
    }
    device.copy_(host, /*non_blocking=*/true);
    check_cuda(queue_resizes(reinterpret_cast<const ResizeTask*>(to), count, most, stream.stream()), "resizing");
  }

  void destroy() noexcept {
    if (header_ != nullptr) nvjpeg_.destroy_stream(header_);
    if (one_.state != nullptr) nvjpeg_.destroy_state(one_.state);
    destroy(cores_);
    destroy(engines_);
  }

  void destroy(Way& way) noexcept {
    for (State& state : way.states) {
      if (state.state != nullptr) nvjpeg_.destroy_state(state.state);
      state.state = nullptr;
    }
    if (way.handle != nullptr) nvjpeg_.destroy(way.handle);
    way.handle = nullptr;
  }

  c10::DeviceIndex gpu_;
  NvjpegLibrary nvjpeg_;
  CountedMemory memory_;
  Way cores_;                            // the GPU's, and the CPU
  Way engines_;                          // no handle where the GPU has none
  nvjpegJpegStream_t header_ = nullptr;  // of the picture that is asked about
  State one_;                            // of cores_, for a picture by itself
};

}  // namespace
}  // namespace lockstep::image

lockstep::image::JpegDecoder* lockstep_make_jpeg_decoder(int gpu) { return new lockstep::image::NvjpegDecoder(gpu); }

const char* lockstep_plugin_build() { return LOCKSTEP_PLUGIN_BUILD; }
