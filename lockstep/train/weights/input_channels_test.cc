#include "lockstep/train/weights/input_channels.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include "lockstep/base/testing/refusal.h"
#include "lockstep/checkpoint/state_dict.h"

namespace lockstep::train {
namespace {

class Pictures final : public data::Dataset {
 public:
  explicit Pictures(std::string example) : example_(std::move(example)) {}
  int64_t size() const override { return 2; }
  std::vector<data::Field> fields() const override { return {}; }
  void read(int64_t, const Draw&, std::span<const at::Tensor>, data::ReadStats&) const override {}
  std::string fingerprint() const override { return ""; }
  std::string description() const override { return ""; }
  std::string name_of(int64_t index) const override { return cat(index, ".png"); }
  std::string example() const override { return example_; }

 private:
  std::string example_;
};

torch::nn::Sequential network(int64_t channels, int64_t outputs = 4) {
  return torch::nn::Sequential(torch::nn::Conv2d(torch::nn::Conv2dOptions(channels, outputs, 3)),
                               torch::nn::Conv2d(torch::nn::Conv2dOptions(outputs, 2, 1)));
}

std::string refused(const torch::nn::Sequential& made, const checkpoint::Dict& weights, const std::string& example) {
  return testing_support::refusal<DataError>([&] { check_input_channels(*made, weights, "a.pt", Pictures(example)); });
}

TEST(InputChannels, NameThePictureThatHasOthers) {
  const auto colour = network(3), grey = network(1);
  EXPECT_EQ(refused(grey, checkpoint::state_dict(*colour), "cat.png"),
            "cat.png: the network of a.pt has 3 input channels, and the image 1; load a network of 1 input channel, or "
            "save one "
            "of the pictures at least in colour");
  EXPECT_EQ(refused(colour, checkpoint::state_dict(*grey), "cat.png"),
            "cat.png: the network of a.pt has 1 input channel, and the image 3; load a network of 3 input channels, or "
            "save all "
            "pictures in grey");
  EXPECT_EQ(
      refused(colour, checkpoint::state_dict(*network(4)), "cat.png"),
      "cat.png: the network of a.pt has 4 input channels, and the image 3; load a network of 3 input channels, or "
      "train with --channels 4");
}

TEST(InputChannels, NoFileIsBlamedForWhatIsReadTheSameOfAll) {
  EXPECT_EQ(refused(network(3), checkpoint::state_dict(*network(1)), ""),
            "0.png: the network of a.pt has 1 input channel, and the image is read with 3; load a network of 3 input "
            "channels");
}

TEST(InputChannels, AreFoundBehindAWrappersPrefix) {
  checkpoint::Dict wrapped;
  for (const auto& [name, tensor] : checkpoint::named_state(*network(3))) wrapped.set("module." + name, tensor);
  EXPECT_NE(refused(network(1), wrapped, "cat.png"), "");
}

TEST(InputChannels, OtherDifferencesAreNotTheirs) {
  EXPECT_EQ(refused(network(3), checkpoint::state_dict(*network(3)), "cat.png"), "");
  EXPECT_EQ(refused(network(3, 4), checkpoint::state_dict(*network(3, 5)), "cat.png"), "");
  EXPECT_EQ(refused(network(3, 4), checkpoint::state_dict(*network(1, 5)), "cat.png"), "") << "another network";
  EXPECT_EQ(refused(network(3), {}, "cat.png"), "");
  const torch::nn::Sequential flat(torch::nn::Linear(3, 2));
  EXPECT_EQ(refused(flat, checkpoint::state_dict(*network(1)), "cat.png"), "");
}

}  // namespace
}  // namespace lockstep::train
