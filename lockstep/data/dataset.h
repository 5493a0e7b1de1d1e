// The interface of all data sets: samples by number, written into rows of tensors that are ready for a model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/draw.h"
#include "lockstep/base/listed.h"
#include "lockstep/data/batch.h"

namespace lockstep::data {

// One of the tensors that a sample is made of.
struct Field {
  std::string name;
  at::ScalarType dtype;
  std::vector<int64_t> shape;  // of one sample: {3, 224, 224}; {} for a number
  bool channels_last = false;  // a [C, H, W] lies in memory as H, W, C
  // Of uint8 images [C, H, W] that are normalised where they are used (byte_tables.h): the number for each byte of each
  // channel, [C, 256] of a floating-point type on the CPU. Undefined: the values are what they are.
  at::Tensor table = {};
  // Of uint8 images that are decoded where they are used (image/device): the bytes of a picture's row in a batch, which
  // is uint8 [encoded] then. The shape is the decoded image's. 0: the values are what they are.
  int64_t encoded = 0;
};

// The shape of a sample's row in a batch that a loader makes: the field's, or that of an encoded picture.
std::vector<int64_t> row_shape(const Field& field);

// Where the time of reading went.
struct ReadStats {
  int64_t read_ns = 0, decode_ns = 0, transform_ns = 0;
  int64_t bytes = 0;  // of files
  ReadStats& operator+=(const ReadStats& other);
};

// A set of samples, numbered from 0. Any number of threads may call it at once. Where a std::shared_ptr owns it,
// threads that read it own it too.
class Dataset : public std::enable_shared_from_this<Dataset> {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;

  // The tensors of a sample, the same at every call. The first one is "data".
  virtual std::vector<Field> fields() const = 0;

  // Writes sample `index` into `rows`: one for each field, of its dtype, shape and strides, on the CPU, and written
  // whole. A function of the index and the draw alone, which only matters where samples are augmented. Adds to `stats`.
  // Threads have rows of their own; it works on the calling thread alone. Throws DataError that names the sample where
  // it is damaged, IoError where the machine failed, BugError for a number out of range.
  virtual void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, ReadStats& stats) const = 0;

  // A short text that changes with the samples, and not with where they lie. A run is resumed with equal data alone.
  virtual std::string fingerprint() const = 0;

  // A line for a run's header: what the data is and where it comes from.
  virtual std::string description() const = 0;

  // What is done to the samples as they are read, at random or not: "RandomResizedCrop 224, flip 0.5". Neither what
  // fingerprint() covers nor a place. A loop is resumed with equal ones alone.
  virtual std::string transforms() const { return {}; }
  // The number of classes of the targets; 0: they are none, as in a regression.
  virtual int64_t classes() const { return 0; }
  // Their names in the order of their numbers; empty where they have none.
  virtual std::vector<std::string> class_names() const { return {}; }
  // The class of a sample where that is known without reading it, else -1.
  virtual int64_t class_of(int64_t /*index*/) const { return -1; }
  // What errors call a sample: "sample 12", or its file.
  virtual std::string name_of(int64_t index) const;
  // The name of a sample for whose sake sample_shape() has its channels, where files decide on that: a coloured image
  // among grey ones. Empty where all are read with the same channels, whatever their files have.
  virtual std::string example() const { return {}; }
  // The same samples as an evaluation reads them, not augmented. Null: they never are.
  virtual std::shared_ptr<const Dataset> for_evaluation() const { return nullptr; }
  // Tells which samples will be read soon. Returns at once.
  virtual void will_need(std::span<const int64_t> /*indices*/) const {}
  // Whether reading a sample takes so long that threads of its own are worth while.
  virtual bool decodes() const { return false; }
  // The files that the samples lie in, where a changed one is to be named.
  virtual std::vector<Listed> listing() const { return {}; }

  // The shape of a sample's first tensor: {1, 28, 28}.
  std::vector<int64_t> sample_shape() const { return fields().front().shape; }
};

// The parts of one data set. One that has no test or validation part leaves that null (subset.h: complete()).
struct Splits {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> test;
  std::shared_ptr<const Dataset> validation;
  double usual_validation = 0;  // percent to hold out where there is no test part and nobody says how much
};

// Throws BugError unless the index lies in [0, size).
void check_index(int64_t index, int64_t size);

}  // namespace lockstep::data
