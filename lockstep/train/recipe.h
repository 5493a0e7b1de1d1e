// A recipe: a model, data, a loss, metrics and default options under one name.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/data/batch_transform.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/findings.h"
#include "lockstep/data/on_one_rank.h"
#include "lockstep/nn/staged.h"
#include "lockstep/train/options/recipe_description.h"

namespace lockstep::train {

struct Model {
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const data::Batch& batch)> forward;  // uses the module's parameters
  std::function<std::vector<nn::Layer>()> layers = {};  // what forward does in training, for --parallel pipeline
  std::string text = {};  // what the options don't tell of it, for the header: "3 input channels, 2 classes"
};

// The defaults of a run's unset options.
struct Defaults {
  int batch_size = 32;  // samples a lane
  int epochs = 1;
  double lr = 0.01;
  std::string optimizer = "sgd";  // one of optim::kOptimizers
  double momentum = 0;
  double weight_decay = 0;
  std::string schedule = "constant";  // one of schedule::schedule_names()
  int64_t warmup = 0;                 // steps
  bool channels_last = false;         // channels_last is the faster memory format for this model
  int eval_batch = 256;               // samples that evaluation computes at a time
};

// What a run asks of its data.
struct DataRequest {
  std::string path;                   // empty: data made on the spot, keyed by the seed
  uint64_t seed = 0;                  // of the run
  bool channels_last = false;         // the layout in memory that the model takes images in
  at::ScalarType dtype = at::kFloat;  // of images
  // Whether images had better come as uint8 with the table that normalises them on the device (data::Field::table).
  // Only of a recipe that takes_bytes(); where it has none, they come normalised.
  bool as_bytes = false;
  // Whether training images are to come encoded, for the device to decode them (data::Field::encoded), and as_bytes.
  // Only of a recipe that takes_encoded().
  bool encoded = false;
  bool passes_over_bad = false;      // a sample that can't be read is no reason not to open the others
  int threads = 1;                   // that opening may use
  data::OnOneRank on_one_rank = {};  // for what every rank would find out alike, such as the list of all files
  std::shared_ptr<data::Findings> findings = nullptr;  // kept in the run's folder; null: none are kept
};

// What a run's record says of the data that it was trained on, for files to predict for.
struct InputRequest {
  int64_t channels = 3;          // of the network's images
  std::string fingerprint = {};  // of the run's training data; empty: weights without a record
  std::string data = {};         // where they lay; empty: not known
  bool drawn = false;            // the run's data were made on the spot
  bool channels_last = false;    // as in DataRequest
};
// Opens a file as a data set of one sample. Throws DataError for a file that the network can't take.
using OpenInput = std::function<std::shared_ptr<const data::Dataset>(const std::string& file)>;

// The base RecipeDescription has its name, presets and own options. These options are read before any function below is
// called. From then on the recipe is immutable, and any thread may call it.
class Recipe : public RecipeDescription {
 public:
  virtual Defaults defaults() const = 0;
  // Opens the data. A collective where it uses request.on_one_rank. Throws DataError.
  virtual data::Splits open_data(const DataRequest& request) const = 0;
  // Returns what opens files as an evaluation of the run would see them; their targets mean nothing. It lives no longer
  // than the recipe. Empty where the recipe takes no files. Throws ConfigError where the record does not say how the
  // run saw its images.
  virtual OpenInput input_opener(const InputRequest& /*request*/) const { return {}; }
  // Returns whether input_opener() opens files.
  bool takes_files() const;
  // Returns whether the network gives a class for each pixel, scores [N, classes, H, W].
  virtual bool makes_masks() const { return false; }

  // Returns what is done to each lane's batch of training data, such as MixUp (data/mix.h); null: nothing. Batches of
  // an evaluation stay as they are.
  virtual std::shared_ptr<const data::BatchTransform> batch_transform() const { return nullptr; }
  // Returns whether open_data() may be asked for bytes, by --normalize device or where a GPU trains: it heeds
  // request.as_bytes, and no data set of the recipe's own computes with pixels that another one has read.
  virtual bool takes_bytes() const { return false; }
  // Returns whether open_data() heeds request.encoded, for --decode device.
  virtual bool takes_encoded() const { return false; }
  // Returns whether forward and loss do the same operations on the device for any batch of one shape, and draw
  // random numbers there only: such steps are recorded as a CUDA graph (--cuda-graph).
  virtual bool repeats_operations() const { return false; }
  // Makes a model whose initial weights depend on the seed alone.
  virtual Model make_model(uint64_t seed, const data::Dataset& data) const = 0;

  // Returns the mean of the samples' losses, a scalar with a graph. Each sample's loss depends on that sample alone, so
  // that lanes' losses can be joined exactly.
  virtual at::Tensor loss(const at::Tensor& output, const data::Batch& batch) const = 0;
  // Returns the sums over the samples that metrics() needs: fp64 [k], exact or added in one fixed order.
  virtual std::vector<double> measure(const at::Tensor& output, const data::Batch& batch) const = 0;
  // Returns the metrics of final.json, from the sums over all samples: {"accuracy": 0.98}.
  virtual nlohmann::ordered_json metrics(const std::vector<double>& sums, int64_t samples) const = 0;
  // Returns the name of the metric that decides best.pt and --early-stop: one of metrics(), whatever the samples, or
  // "loss".
  virtual std::string best_by() const = 0;
  // Returns whether less of that metric is better.
  virtual bool lower_is_better() const { return best_by() == "loss"; }
};

}  // namespace lockstep::train
