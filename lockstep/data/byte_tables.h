// Images that travel as bytes and are normalised where they are used, on any device. A table (Field::table) has the
// number for each byte, so that the bits are those which the CPU's table would have written.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

constexpr int64_t kLookUpBytes = int64_t{64} << 20;  // of memory that look_up() uses meanwhile, or one image's

// Makes numbers of images, [N, C, H, W] of uint8: of the table's dtype, in the same layout. `table` is [C, 256] on the
// images' device, where the current stream computes. Throws BugError for images of another type, which are numbers
// already.
at::Tensor look_up(const at::Tensor& images, const at::Tensor& table);

// The tables of a data set's fields, on a device. Immutable; any thread.
class ByteTables {
 public:
  ByteTables() = default;
  ByteTables(const std::vector<Field>& fields, c10::Device device);

  // Looks up the tensors of a batch on the device that have tables. Once: a second time is a ConfigError.
  void apply(Batch& batch) const;

 private:
  std::vector<Batch::Named> tables_;
};

bool has_tables(const std::vector<Field>& fields);

// Whether one of the fields comes encoded (Field::encoded).
bool has_encoded(const std::vector<Field>& fields);

// The fields as they are once their pictures have been decoded and their bytes looked up.
std::vector<Field> looked_up(std::vector<Field> fields);

}  // namespace lockstep::data
