#include "lockstep/train/device_input.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/gpu.h"
#include "lockstep/loop/skip_list.h"
#include "lockstep/train/device.h"
#include "lockstep/train/jpeg_decoder_of.h"
#include "lockstep/train/run_data.h"
#include "lockstep/train/testing/byte_images.h"
#include "lockstep/train/testing/encoded_images.h"
#include "lockstep/train/testing/recorded_stream.h"
#include "lockstep/train/testing/tiny_recipe.h"
#include "support/worlds.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using testing_support::ByteImages;
using testing_support::RecordedStream;

// Five of its samples are damaged.
struct Damaged final : testing_support::Blobs {
  using Blobs::Blobs;
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, data::ReadStats& stats) const override {
    if (index % 4 == 2) throw DataError(name_of(index), ": is damaged");
    Blobs::read(index, draw, rows, stats);
  }
};

// Tells when so many samples have been read.
struct Counted final : testing_support::Blobs {
  using Blobs::Blobs;
  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, data::ReadStats& stats) const override {
    Blobs::read(index, draw, rows, stats);
    const std::lock_guard lock(mutex);
    ++reads;
    more.notify_all();
  }
  bool reaches(int64_t count) const {
    std::unique_lock lock(mutex);
    return more.wait_for(lock, std::chrono::seconds(60), [&] { return reads >= count; });
  }
  mutable std::mutex mutex;
  mutable std::condition_variable more;
  mutable int64_t reads = 0;
};

data::Loader make_loader(int64_t skip_bad = 5) {
  const data::LaneSampler sampler({.dataset_size = 20, .lanes = 2, .batch_size = 3, .seed = 1});
  return data::Loader(std::make_shared<Damaged>(20), sampler,
                      {.first_lane = 0, .last_lane = 2, .skipped = std::make_shared<data::SkippedSamples>(skip_bad)});
}

data::Loader loader_of_images(bool as_bytes, int workers = 0) {
  const data::LaneSampler sampler({.dataset_size = 20, .lanes = 2, .batch_size = 3, .seed = 1});
  return data::Loader(std::make_shared<ByteImages>(20, as_bytes), sampler,
                      {.first_lane = 0, .last_lane = 2, .workers = workers});
}

// The next step of both is the same, and lies on `device`.
void expect_same_step(const data::StepBatch& got, const data::StepBatch& want, at::Device device) {
  EXPECT_EQ(got.position, want.position);
  EXPECT_EQ(got.global_samples, want.global_samples);
  EXPECT_EQ(got.skipped, want.skipped);
  ASSERT_EQ(got.lanes.size(), want.lanes.size());
  for (size_t i = 0; i < got.lanes.size(); ++i) {
    EXPECT_EQ(got.lanes[i].lane, want.lanes[i].lane);
    EXPECT_EQ(got.lanes[i].data().device(), device);
    EXPECT_EQ(got.lanes[i].data().scalar_type(), want.lanes[i].data().scalar_type());
    EXPECT_TRUE(at::equal(got.lanes[i].data().cpu(), want.lanes[i].data()));
    EXPECT_TRUE(at::equal(got.lanes[i].target().cpu(), want.lanes[i].target()));
  }
}

// A step in which the device computes while the next batch is taken.
data::StepBatch next_of(DeviceInput& input) {
  data::StepBatch batch = input.next();
  input.take_ahead();
  return batch;
}

// Every batch on `device` is the loader's.
void expect_the_loaders(at::Device device, const DeviceInput::Options& options) {
  data::Loader loader = make_loader(), same = make_loader();
  DeviceInput input(loader, device, options);
  for (int step = 0; step < 9; ++step) {  // over the ends of epochs
    expect_same_step(next_of(input), same.next(), device);
    EXPECT_EQ(loader.skipped()->all(), same.skipped()->all()) << "or what is ahead is told of";
  }
  EXPECT_EQ(same.skipped()->all().size(), 5u);
}

// Images that come as bytes are, as numbers, those that are normalised as they are read.
void expect_normalised(at::Device device, const DeviceInput::Options& options) {
  for (const int workers : {0, 2}) {
    data::Loader loader = loader_of_images(true, workers), same = loader_of_images(false);
    DeviceInput input(loader, device, options);
    for (int step = 0; step < 9; ++step) expect_same_step(next_of(input), same.next(), device);
  }
}

data::Loader loader_of_pictures(bool encoded, int workers = 0) {
  const data::LaneSampler sampler({.dataset_size = 20, .lanes = 2, .batch_size = 3, .seed = 1});
  return data::Loader(std::make_shared<testing_support::EncodedImages>(20, encoded), sampler,
                      {.first_lane = 0, .last_lane = 2, .workers = workers});
}

// Pictures that are decoded there have the bits of those that the host decodes, where libjpeg does both.
void expect_decoded(const DeviceInput::Options& options) {
  for (const int workers : {0, 2}) {
    data::Loader loader = loader_of_pictures(true, workers), same = loader_of_pictures(false);
    DeviceInput input(loader, at::kCPU, options), on_host(same, at::kCPU);
    for (int step = 0; step < 9; ++step) expect_same_step(next_of(input), next_of(on_host), at::kCPU);
    ASSERT_NE(input.decoder(), nullptr);
    EXPECT_EQ(input.decoder()->text(), "libjpeg");
    EXPECT_EQ(on_host.decoder(), nullptr);
    // Two epochs of 20, and a step of 6: no more, though another one is ahead.
    EXPECT_EQ(input.decoded().on_device + input.decoded().host(), 46);
    EXPECT_EQ(input.decoded().on_host.at("PNG"), input.decoded().host());
  }
}

DeviceInput::Options on_a_stream(int64_t most_ahead = kMostAhead) {
  return {.most_ahead = most_ahead, .stream = std::make_shared<RecordedStream>()};
}

TEST(DeviceInput, OnTheCpuIsTheLoader) {
  expect_the_loaders(at::kCPU, {});
  expect_normalised(at::kCPU, {});
}

TEST(DeviceInput, OnAStreamIsTheLoader) {
  for (const int64_t most_ahead : {int64_t{0}, kMostAhead}) {
    expect_the_loaders(at::kCPU, on_a_stream(most_ahead));
    expect_normalised(at::kCPU, on_a_stream(most_ahead));
  }
}

TEST(DeviceInput, PicturesAreDecodedWhereTheyAreUsed) {
  expect_decoded({});
  for (const int64_t most_ahead : {int64_t{0}, kMostAhead}) expect_decoded(on_a_stream(most_ahead));
}

// One that can't be decoded fails the step that needs it.
struct Failing final : image::JpegDecoder {
  std::vector<int64_t> decode(std::span<const image::PlannedJpeg> pictures, const at::Tensor& images) override {
    if (calls++ == 5) throw DataError("1.jpg: is damaged");
    return host.decode(pictures, images);
  }
  std::string text() const override { return "failing"; }
  int64_t device_bytes() const override { return 0; }
  int calls = 0;  // one for each lane
  image::HostDecoder host;
};
TEST(DeviceInput, APictureThatCantBeDecodedFailsItsStep) {
  for (const bool on_stream : {false, true}) {
    DeviceInput::Options options = on_stream ? on_a_stream() : DeviceInput::Options();
    options.decoder = std::make_shared<Failing>();
    data::Loader loader = loader_of_pictures(true), same = loader_of_pictures(false);
    DeviceInput input(loader, at::kCPU, options), on_host(same, at::kCPU);
    for (int step = 0; step < 2; ++step) expect_same_step(next_of(input), next_of(on_host), at::kCPU);
    EXPECT_THROW(next_of(input), DataError);
    EXPECT_EQ(loader.position(), same.position()) << "the step may be asked for again";
    expect_same_step(next_of(input), next_of(on_host), at::kCPU);
  }
}

// The computing stream keeps the memory of all that a step has, and of nothing else.
TEST(DeviceInput, TheMemoryOfAStepIsKeptForTheComputingStream) {
  for (const int64_t most_ahead : {int64_t{0}, kMostAhead}) {
    const auto stream = std::make_shared<RecordedStream>();
    data::Loader loader = loader_of_images(true);
    DeviceInput input(loader, at::kCPU, {.most_ahead = most_ahead, .stream = stream});
    for (int step = 0; step < 3; ++step) {
      data::StepBatch batch = next_of(input);
      std::vector<const c10::StorageImpl*> tensors;
      for (auto& lane : batch.lanes) {
        lane.for_each_tensor([&](at::Tensor& tensor) { tensors.push_back(tensor.storage().unsafeGetStorageImpl()); });
      }
      EXPECT_EQ(tensors.size(), 4u);
      EXPECT_THAT(std::exchange(stream->log()->used, {}), ::testing::UnorderedElementsAreArray(tensors));
    }
  }
}

TEST(DeviceInput, CopiesAStepAheadInThisOrder) {
  const auto stream = std::make_shared<RecordedStream>();
  data::Loader loader = loader_of_images(true);
  DeviceInput input(loader, at::kCPU, {.stream = stream});
  EXPECT_TRUE(stream->log()->taken().empty());
  auto batch = next_of(input);  // two lanes of two tensors
  EXPECT_THAT(stream->log()->taken(),
              ElementsAre("copy × 2", "look up", "copy × 2", "look up", "event 1", "compute waits for 1", "used × 4",
                          "copy × 2", "look up", "copy × 2", "look up", "event 2"));
  batch = next_of(input);
  EXPECT_THAT(stream->log()->taken(), ElementsAre("host waits for 1", "compute waits for 2", "used × 4", "copy × 2",
                                                  "look up", "copy × 2", "look up", "event 3"));
}

TEST(DeviceInput, WithoutTakingAheadEachBatchIsTakenWhenItIsAskedFor) {
  data::Loader loader = loader_of_images(true), same = loader_of_images(false);
  const auto stream = std::make_shared<RecordedStream>();
  DeviceInput input(loader, at::kCPU, {.stream = stream});
  for (int step = 0; step < 9; ++step) {
    expect_same_step(input.next(), same.next(), at::kCPU);
    EXPECT_EQ(stream->log()->taken().back(), "used × 4") << "nothing was copied for the next step";
    if (step % 3 == 1) input.take_ahead();
    if (step % 3 != 2) continue;
    input.take_ahead();
    const data::Position ahead = loader.position();
    input.take_ahead();
    EXPECT_EQ(loader.position(), ahead) << "twice is once";
  }
}

TEST(DeviceInput, AStepThatTakesTooMuchIsCopiedWhenItIsUsed) {
  const auto stream = std::make_shared<RecordedStream>();
  data::Loader loader = loader_of_images(true);
  DeviceInput input(loader, at::kCPU, {.most_ahead = 6 * ByteImages::kSampleBytes - 1, .stream = stream});
  next_of(input);
  EXPECT_THAT(stream->log()->taken(),
              ElementsAre("copy × 2", "look up", "copy × 2", "look up", "event 1", "compute waits for 1", "used × 4"));
  EXPECT_EQ(loader.position(), (data::Position{.epoch = 0, .step = 2})) << "it is read ahead all the same";
  next_of(input);
  EXPECT_THAT(stream->log()->taken(), ElementsAre("host waits for 1", "copy × 2", "look up", "copy × 2", "look up",
                                                  "event 2", "compute waits for 2", "used × 4"));
  data::Loader other = loader_of_images(true);
  DeviceInput fits(other, at::kCPU, {.most_ahead = 6 * ByteImages::kSampleBytes, .stream = stream});
  next_of(fits);
  EXPECT_EQ(stream->log()->taken().back(), "event 4");
}

// Between two steps the one that follows the one ahead is read, whatever --workers is.
TEST(DeviceInput, BatchesAreMadeWhileTheDeviceComputes) {
  const auto samples = std::make_shared<Counted>(60);
  const data::LaneSampler sampler({.dataset_size = 60, .lanes = 2, .batch_size = 3, .seed = 1});
  data::Loader loader(samples, sampler,
                      {.first_lane = 0, .last_lane = 2, .workers = loading_threads(DeviceKind::kCuda, 0)});
  DeviceInput input(loader, at::kCPU, on_a_stream());
  for (int step = 0; step < 4; ++step) {
    next_of(input);
    ASSERT_TRUE(samples->reaches(6 * (step + 3))) << step;
  }
}

// Of steps of two lanes of two tensors, a copy of the third fails.
TEST(DeviceInput, ACopyThatFailsFailsTheStepThatNeedsIt) {
  for (const int64_t most_ahead : {int64_t{0}, kMostAhead}) {
    const auto stream = std::make_shared<RecordedStream>();
    stream->failing_copy = 9;
    data::Loader loader = loader_of_images(true), same = loader_of_images(false);
    DeviceInput input(loader, at::kCPU, {.most_ahead = most_ahead, .stream = stream});
    for (int step = 0; step < 2; ++step) expect_same_step(next_of(input), same.next(), at::kCPU);
    EXPECT_THROW(next_of(input), IoError);
    EXPECT_EQ(loader.position(), same.position()) << "the step may be asked for again";
    for (int step = 0; step < 3; ++step) expect_same_step(next_of(input), same.next(), at::kCPU);
  }
}

// Ranks that keep a list of bad samples meet in each step, also in one of which a copy failed on one of them.
RANK_PROGRAM(a_copy_of_one_rank_fails) {
  const auto world = ::lockstep::testing_support::join_world(context);
  for (const int64_t most_ahead : {int64_t{0}, kMostAhead}) {
    const auto stream = std::make_shared<RecordedStream>();
    if (context.rank == 0) stream->failing_copy = 5;  // of the third step: one lane of two tensors
    const data::LaneSampler sampler({.dataset_size = 20, .lanes = 2, .batch_size = 3, .seed = 1});
    data::Loader loader(
        std::make_shared<ByteImages>(20, true), sampler,
        {.first_lane = context.rank, .last_lane = context.rank + 1, .skipped = loop::skip_list(*world, /*most=*/5)});
    DeviceInput input(loader, at::kCPU, {.most_ahead = most_ahead, .stream = stream});
    for (int64_t step = 0; step < 2; ++step) EXPECT_EQ(next_of(input).position.step, step);
    if (context.rank == 0) {
      EXPECT_THROW(next_of(input), IoError);
    } else {
      EXPECT_EQ(next_of(input).position.step, 2);
    }
  }
}
TEST(DeviceInput, ACopyThatFailsOnOneRankLeavesNoOtherWaiting) {
  ::lockstep::testing_support::expect_ranks_pass("a_copy_of_one_rank_fails", 2);
}

TEST(DeviceInput, TooManyBadSamplesFailTheStepThatNeedsThem) {
  const auto step_of_failure = [](const auto& next) {
    int step = 0;
    try {
      for (; step < 9; ++step) next();
    } catch (const DataError&) {
    }
    return step;
  };
  data::Loader loader = make_loader(/*skip_bad=*/2), same = make_loader(/*skip_bad=*/2);
  DeviceInput input(loader, at::kCPU, on_a_stream());
  const int failed = step_of_failure([&] { next_of(input); });
  EXPECT_EQ(failed, step_of_failure([&] { same.next(); }));
  EXPECT_LT(failed, 9);
  EXPECT_EQ(loader.position(), same.position()) << "the step may be asked for again";
  EXPECT_EQ(loader.skipped()->all(), same.skipped()->all());
}

TEST(DeviceInput, SaysWhatItTakesOfTheDevice) {
  const data::Field target{.name = "target", .dtype = at::kLong, .shape = {}};
  const std::vector<data::Field> numbers = {{.name = "data", .dtype = at::kFloat, .shape = {3, 512, 512}}, target};
  std::vector<data::Field> bytes = numbers;
  bytes[0].dtype = at::kByte;
  bytes[0].table = at::zeros({3, 256});
  const at::Device gpu(at::kCUDA, 0);
  EXPECT_EQ(text_of_input(numbers, 8, at::kCPU), "");
  EXPECT_EQ(text_of_input(bytes, 8, at::kCPU), "bytes, normalised as they are used");
  // 24 MiB of numbers, three times, or twice if none is ahead; and 6 of bytes with 24 of indices. Targets are above.
  EXPECT_EQ(text_of_input(numbers, 8, gpu), "a step ahead, about 73 MiB on the device");
  EXPECT_EQ(text_of_input(bytes, 8, gpu), "bytes, normalised on the device, a step ahead, about 103 MiB on the device");
  EXPECT_EQ(text_of_input(numbers, 8, gpu, 1 << 20), "no step ahead, about 49 MiB on the device");
  bytes[0].encoded = 1 << 19;
  EXPECT_EQ(text_of_input(bytes, 8, at::kCPU, kMostAhead, "libjpeg"),
            "JPEGs, decoded by libjpeg and normalised as they are used");
  // And 64 of decoded pixels, and as much between the passes of a resize.
  EXPECT_EQ(text_of_input(bytes, 8, gpu, kMostAhead, "nvJPEG 13.3.2"),
            "JPEGs, decoded by nvJPEG 13.3.2 and normalised on the device, a step ahead, about 231 MiB on the device "
            "and what the decoder itself takes");
}

TEST(DeviceInput, OnAGpuRunsAhead) {
  LOCKSTEP_NEEDS_GPU();
  const at::Device device = open_device(DeviceKind::kCuda, {});
  expect_the_loaders(device, {});
  expect_the_loaders(device, {.most_ahead = 0});
}

// The table adds 256 for each channel, so that numbers differ as bytes do.
TEST(DeviceInput, OnAGpuDecodesToNearlyTheHostsPixels) {
  LOCKSTEP_NEEDS_GPU();
  const at::Device device = open_device(DeviceKind::kCuda, {});
  DeviceInput::Options options;
  try {
    options.decoder = jpeg_decoder_of(device);
  } catch (const ConfigError& error) {
    GTEST_SKIP() << error.what();  // built without nvJPEG, or it is not installed
  }
  data::Loader loader = loader_of_pictures(true, 2), same = loader_of_pictures(false);
  DeviceInput input(loader, device, options), on_host(same, at::kCPU);
  for (int step = 0; step < 9; ++step) {
    const data::StepBatch got = next_of(input), want = next_of(on_host);
    for (size_t i = 0; i < got.lanes.size(); ++i) {
      ASSERT_EQ(got.lanes[i].data().device(), device);
      const at::Tensor off = (got.lanes[i].data().cpu() - want.lanes[i].data()).abs();
      EXPECT_LT(off.mean().item<float>(), 3) << "levels";
      EXPECT_LT(off.max().item<float>(), 40);
      EXPECT_TRUE(at::equal(got.lanes[i].target().cpu(), want.lanes[i].target()));
    }
  }
  EXPECT_EQ(input.decoded().text(), cat(input.decoded().on_device, " on the device, ", input.decoded().host(),
                                        " on the host (", input.decoded().host(), " PNG)"));
}

TEST(DeviceInput, OnAGpuNormalisesToTheHostsBits) {
  LOCKSTEP_NEEDS_GPU();
  expect_normalised(open_device(DeviceKind::kCuda, {}), {});
}

}  // namespace
}  // namespace lockstep::train
