#include "lockstep/train/device_input.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/train/jpeg_decoder_of.h"

namespace lockstep::train {
namespace {

// The bytes of a step's batches on the device. `fields` are those that the model takes.
int64_t device_bytes(const data::StepBatch& step, const std::vector<data::Field>& fields) {
  int64_t rows = 0;
  for (const auto& lane : step.lanes) rows += lane.size();
  return data::bytes_of(fields, rows);
}

// Those of the fields that are bytes until they are looked up, and what decoding and looking up take beside them.
int64_t bytes_in_between(const std::vector<data::Field>& fields, int64_t rows) {
  int64_t bytes = data::has_encoded(fields) ? 2 * image::kDecodedBytes : 0, most_indices = 0;
  for (data::Field field : fields) {
    if (!field.table.defined()) continue;
    field.encoded = 0;  // of the decoded images
    const int64_t of_field = data::bytes_of({field}, rows);
    const int64_t of_image = of_field / std::max<int64_t>(1, rows);
    const int64_t index = int64_t{sizeof(int32_t)};
    most_indices = std::max(most_indices, std::min(of_field * index, std::max(data::kLookUpBytes, of_image * index)));
    bytes += of_field;
  }
  return bytes + most_indices;
}

}  // namespace

data::BatchMemory batch_memory(c10::Device device) {
  if (device.is_cpu()) return {};
  return [](at::IntArrayRef shape, at::ScalarType dtype, at::MemoryFormat format) {
    return at::empty(shape, at::TensorOptions(dtype).pinned_memory(true), format);
  };
}

DeviceInput::DeviceInput(data::Loader& loader, c10::Device device, Options options)
    : loader_(loader),
      most_ahead_(options.most_ahead),
      fields_(data::looked_up(loader.dataset().fields())),
      stream_(std::move(options.stream)) {
  if (stream_ == nullptr && !device.is_cpu()) stream_ = copy_stream(device);
  for (const data::Field& field : loader_.dataset().fields()) {
    if (field.encoded > 0) encoded_.push_back(field);
  }
  if (!encoded_.empty()) pictures_.emplace(options.decoder ? options.decoder : jpeg_decoder_of(device), device);
  const auto make_tables = [&] { tables_ = data::ByteTables(loader_.dataset().fields(), device); };
  if (stream_ == nullptr) {
    make_tables();
  } else {
    stream_->run(make_tables);
  }
}

data::StepBatch DeviceInput::next() {
  if (stream_ == nullptr) return next_in_place();
  const int64_t waited = take_ahead();
  if (present_ && present_->arrived) present_->arrived->host_waits();  // a step ago: it has arrived long since
  present_ = ahead_.next();
  if (!present_->arrived) upload(*present_);
  data::StepBatch batch = loader_.settle(std::move(present_->read));
  decoded_ += present_->decoded;
  present_->arrived->compute_waits();
  for (auto& lane : batch.lanes) {
    lane.for_each_tensor([&](at::Tensor& tensor) { stream_->also_used_by_compute(tensor); });
  }
  batch.wait_ns = waited;
  return batch;
}

int64_t DeviceInput::take_ahead() {
  if (stream_ == nullptr || ahead_.has_taken()) return 0;
  ahead_.take();
  return ahead_.ahead() != nullptr ? ahead_.ahead()->read.step.wait_ns : 0;
}

// On the CPU that trains, with nothing to copy.
data::StepBatch DeviceInput::next_in_place() {
  data::ReadStep read = loader_.read();
  image::DecodedCounts counts;
  try {
    if (!read.failed) {
      for (auto& lane : read.step.lanes) {
        for (auto& [name, tensor] : lane.tensors) {
          if (const data::Field* field = encoded_field(name)) tensor = decode(*field, tensor, counts);
        }
        tables_.apply(lane);
      }
    }
  } catch (...) {
    read.failed = std::current_exception();
  }
  data::StepBatch batch = loader_.settle(std::move(read));
  decoded_ += counts;
  return batch;
}

const data::Field* DeviceInput::encoded_field(const std::string& name) const {
  const auto found =
      std::find_if(encoded_.begin(), encoded_.end(), [&](const auto& field) { return field.name == name; });
  return found == encoded_.end() ? nullptr : &*found;
}

at::Tensor DeviceInput::decode(const data::Field& field, const at::Tensor& rows, image::DecodedCounts& counts) {
  const image::Size size{static_cast<int>(field.shape[2]), static_cast<int>(field.shape[1])};
  return pictures_->decode(rows, size, field.channels_last, counts);
}

DeviceInput::Arriving DeviceInput::take() {
  Arriving next{loader_.read()};
  if (device_bytes(next.read.step, fields_) <= most_ahead_) upload(next);
  return next;
}

// A failure becomes the read's own: settle() throws it after its collective, and the step is then to be read again.
void DeviceInput::upload(Arriving& step) {
  if (step.read.failed) return;
  try {
    stream_->run([&] {
      for (auto& lane : step.read.step.lanes) {
        for (auto& [name, tensor] : lane.tensors) {
          step.on_host.push_back(stream_->pinned(tensor));
          const data::Field* const field = encoded_field(name);
          tensor =
              field != nullptr ? decode(*field, step.on_host.back(), step.decoded) : stream_->copy(step.on_host.back());
        }
        tables_.apply(lane);
      }
    });
  } catch (...) {
    step.read.failed = std::current_exception();
  }
  try {
    step.arrived = stream_->record();  // of some copies, too: they read what on_host has
  } catch (...) {
    if (!step.read.failed) step.read.failed = std::current_exception();
  }
}

std::string text_of_input(const std::vector<data::Field>& fields, int64_t rows, c10::Device device, int64_t most_ahead,
                          const std::string& decoder) {
  const bool by_table = data::has_tables(fields), encoded = data::has_encoded(fields);
  const std::string form = encoded ? cat("JPEGs, decoded by ", decoder, " and normalised ") : "bytes, normalised ";
  if (device.is_cpu()) return by_table ? form + "as they are used" : "";
  const int64_t step = data::bytes_of(data::looked_up(fields), rows);
  const bool ahead = step <= most_ahead;
  constexpr int64_t kUntilPassed = 1;  // a step whose memory is free once the computing stream has passed it
  const int64_t steps = (ahead ? 2 : 1) + kUntilPassed;
  const int64_t total = steps * step + bytes_in_between(fields, rows);
  constexpr int64_t kMiB = int64_t{1} << 20;
  return cat(by_table ? form + "on the device, " : "", ahead ? "a step ahead, " : "no step ahead, ", "about ",
             (total + kMiB - 1) / kMiB, " MiB on the device", encoded ? " and what the decoder itself takes" : "");
}

}  // namespace lockstep::train
