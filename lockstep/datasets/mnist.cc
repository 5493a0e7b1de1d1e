#include "lockstep/datasets/mnist.h"

#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/datasets/digits/idx.h"
#include "lockstep/datasets/digits/mnist_json.h"
#include "lockstep/datasets/files/kind.h"
#include "lockstep/datasets/grey_images.h"

namespace lockstep::datasets {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSide = 28;
constexpr int64_t kClasses = 10;
constexpr const char* kFormsOfIt =
    "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte (each as it "
    "is "
    "or with .gz), or mnist.json.gz";

// The first of these names that the directory holds, as it is or with .gz.
std::optional<std::string> find_file(const std::string& directory, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    const std::string path = (fs::path(directory) / (name + ending)).string();
    if (is_file(path) || is_folder(path)) return path;  // who reads a folder says that it is one
  }
  return std::nullopt;
}

std::string need_file(const std::string& directory, const std::string& name) {
  if (auto path = find_file(directory, name)) return *path;
  throw DataError(shown(directory), ": ", name, " (or ", name, ".gz) is missing; MNIST is made of ", kFormsOfIt);
}

std::shared_ptr<const data::Dataset> open_part(const std::string& directory, const std::string& prefix,
                                               const char* part) {
  const std::string image_file = need_file(directory, prefix + "-images-idx3-ubyte");
  const std::string label_file = need_file(directory, prefix + "-labels-idx1-ubyte");
  IdxImages images = read_idx_images(image_file);
  if (images.rows != kSide || images.columns != kSide) {
    throw DataError(shown(image_file), ": byte 8: images of ", images.rows, "×", images.columns,
                    ", but MNIST's are 28×28; ", "is it another data set's?");
  }
  std::vector<uint8_t> labels = read_idx_labels(label_file);
  if (static_cast<size_t>(images.count) != labels.size()) {
    throw DataError(shown(image_file), ": ", images.count, " images, but ", shown(label_file), " has ", labels.size(),
                    " labels; do the two belong together? Get both again");
  }
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= kClasses) {
      throw DataError(shown(label_file), ": label ", i, " (byte ", 8 + i, ") is ", +labels[i],
                      ", but digits go from 0 to 9; the file is damaged or not MNIST's");
    }
  }
  return make_dataset({.pixels = std::move(images.pixels),
                       .labels = std::move(labels),
                       .rows = kSide,
                       .columns = kSide,
                       .classes = kClasses,
                       .name = cat("MNIST ", part, " from ", shown(directory))});
}

std::shared_ptr<const data::Dataset> json_part(MnistJsonPart& part, const char* name, const std::string& path) {
  return make_dataset({.pixels = std::move(part.pixels),
                       .labels = std::move(part.labels),
                       .rows = kSide,
                       .columns = kSide,
                       .classes = kClasses,
                       .name = cat("MNIST ", name, " from ", shown(path))});
}

data::Splits open_json(const std::string& path) {
  MnistJson json = read_mnist_json(path);
  data::Splits splits{
      .train = json_part(json.train, "train", path), .test = json_part(json.test, "test", path), .validation = nullptr};
  if (!json.validation.labels.empty() || !json.validation.pixels.empty()) {
    splits.validation = json_part(json.validation, "validation", path);
  }
  return splits;
}

bool has_any_idx_file(const std::string& directory) {
  for (const char* name :
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    if (find_file(directory, name)) return true;
  }
  return false;
}

}  // namespace

data::Splits open_mnist(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    throw DataError(shown(path), ": no such file or directory; expected is a directory with ", kFormsOfIt);
  }
  if (!fs::is_directory(status)) return open_json(path);
  if (has_any_idx_file(path)) {
    return {.train = open_part(path, "train", "train"), .test = open_part(path, "t10k", "test"), .validation = nullptr};
  }
  if (const auto json = find_file(path, "mnist.json")) return open_json(*json);
  throw DataError(shown(path), ": no MNIST in this directory; looked for ", kFormsOfIt);
}

}  // namespace lockstep::datasets
