#include "lockstep/train/weights/input_channels.h"

#include <algorithm>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/state_dict.h"

namespace lockstep::train {
namespace {

std::string channels_text(int64_t count) { return cat(count, count == 1 ? " input channel" : " input channels"); }

// Whether they are weights of one convolution, [outputs, inputs, height, width], but for its inputs.
bool differ_in_inputs(const at::Tensor& a, const at::Tensor& b) {
  return a.dim() == 4 && b.dim() == 4 && a.size(1) != b.size(1) && a.size(0) == b.size(0) && a.size(2) == b.size(2) &&
         a.size(3) == b.size(3);
}

// What to do with the pictures instead, where the files decide on the channels.
std::string advice(int64_t channels) {
  return channels == 1   ? ", or save all pictures in grey"
         : channels == 3 ? ", or save one of the pictures at least in colour"
         : channels <= 4 ? cat(", or train with --channels ", channels)
                         : "";
}

}  // namespace

void check_input_channels(const torch::nn::Module& network, const checkpoint::Dict& weights, const std::string& file,
                          const data::Dataset& data) {
  const auto parameters = network.named_parameters();
  if (parameters.is_empty()) return;
  const checkpoint::NamedTensors of_file = checkpoint::named_for(network, weights, file);
  const auto found = std::ranges::find(of_file, parameters.front().key(), &checkpoint::NamedTensors::value_type::first);
  if (found == of_file.end() || !differ_in_inputs(found->second, parameters.front().value())) return;
  const at::Tensor& stored = found->second;
  const int64_t has = stored.size(1), wanted = parameters.front().value().size(1);
  const std::string picture = data.example();
  throw DataError(picture.empty() ? data.name_of(0) : picture, ": the network of ", file, " has ", channels_text(has),
                  ", and the image ", picture.empty() ? "is read with " : "", wanted, "; load a network of ",
                  channels_text(wanted), picture.empty() ? "" : advice(has));
}

}  // namespace lockstep::train
