// Brings a loader's batches to the computing device, and normalises there those that come as bytes
// (data/byte_tables.h). On the CPU the loader's batches are passed on.
//
// On a GPU the next step's batches are on their way while the present one computes. All is queued on a stream of its
// own: the copies from pinned memory, the tables, and behind them an event. The computing stream waits for that event
// before the step that uses the batches, the host never before the step after it. Until then this holds the host's
// memory, which the loader uses again. The batches' memory on the device belongs to the copy stream, and is given out
// again once the computing stream, too, is done with it.
//
// One step is ahead, over the ends of epochs, and beyond the last step of a run. A step of more than
// Options::most_ahead bytes is read ahead and copied when it is used. What fails on the way, the copy too, is thrown by
// the step that needs it, which may be asked for again.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/byte_tables.h"
#include "lockstep/data/loader.h"
#include "lockstep/image/device/batch_decoder.h"
#include "lockstep/train/copy_stream.h"
#include "lockstep/train/one_ahead.h"

namespace lockstep::train {

// The memory of a loader's batches for this device: pinned for a GPU, which copies from it while it computes.
data::BatchMemory batch_memory(c10::Device device);

constexpr int64_t kMostAhead = int64_t{1} << 30;  // bytes on the device of a step that is copied ahead

class DeviceInput {
 public:
  struct Options {
    int64_t most_ahead = kMostAhead;
    std::shared_ptr<CopyStream> stream = {};           // null: one of the device's, and none of a CPU's
    std::shared_ptr<image::JpegDecoder> decoder = {};  // of pictures that come encoded; null: jpeg_decoder_of(device)
  };

  // Takes batches from `loader`, which outlives this.
  DeviceInput(data::Loader& loader, c10::Device device, Options options);
  DeviceInput(data::Loader& loader, c10::Device device) : DeviceInput(loader, device, Options()) {}
  DeviceInput(const DeviceInput&) = delete;
  DeviceInput& operator=(const DeviceInput&) = delete;

  // Returns the next step's lanes, with all tensors on the device, ready for the current stream. `wait_ns` is the time
  // that this call waited for the loader. Throws what Loader::next() throws for that step: a batch that can't be had
  // ahead fails the step that needs it, and no earlier one. Bad samples, too, are listed when their batch is used. A
  // collective as Loader::next().
  data::StepBatch next();
  // Takes the batch that the next call of next() returns, and begins to copy it; on a CPU, or where it is taken
  // already, does nothing. Call it when a step's work is queued: the device computes while the host decodes and copies.
  // Returns the nanoseconds that it waited for the loader.
  int64_t take_ahead();

  // Of pictures that come encoded: where those of the steps that next() has returned were decoded, and by whom there.
  // Null: none come so.
  const image::DecodedCounts& decoded() const { return decoded_; }
  const image::JpegDecoder* decoder() const { return pictures_ ? &pictures_->decoder() : nullptr; }

 private:
  struct Arriving {
    data::ReadStep read;
    std::unique_ptr<Arrival> arrived = {};  // null: not copied yet
    std::vector<at::Tensor> on_host = {};   // what the copy reads: the loader uses their memory again
    image::DecodedCounts decoded = {};
  };
  Arriving take();
  void upload(Arriving& step);
  data::StepBatch next_in_place();
  const data::Field* encoded_field(const std::string& name) const;
  at::Tensor decode(const data::Field& field, const at::Tensor& rows, image::DecodedCounts& counts);

  data::Loader& loader_;
  int64_t most_ahead_;
  std::vector<data::Field> fields_;  // as the model takes them
  std::shared_ptr<CopyStream> stream_;
  data::ByteTables tables_;
  std::vector<data::Field> encoded_;             // fields that come so
  std::optional<image::BatchDecoder> pictures_;  // where some do
  image::DecodedCounts decoded_;
  std::optional<Arriving> present_;  // that next() has returned, without its step
  OneAhead<Arriving> ahead_{[this] { return take(); }};
};

// How batches of these fields, `rows` samples a step on this rank, reach the device, and the memory that they take of
// it: "a step ahead, 147 MiB on the device". Empty where there is no way to go. `decoder`: who decodes pictures that
// come encoded.
std::string text_of_input(const std::vector<data::Field>& fields, int64_t rows, c10::Device device,
                          int64_t most_ahead = kMostAhead, const std::string& decoder = "");

}  // namespace lockstep::train
