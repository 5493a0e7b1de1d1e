// numpy's element types as its pickles name them: "f4" for float32.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

namespace lockstep::checkpoint {

struct NumpyDtype {
  std::string_view name;                // as the pickle has it; borrowed
  std::optional<at::ScalarType> dtype;  // nothing for objects, texts, dates, records: what no tensor holds
  bool big_endian = false;
};

NumpyDtype numpy_dtype(std::string_view name);

// "f4" for at::kFloat; empty for a type that numpy lacks.
std::string_view numpy_dtype_name(at::ScalarType dtype);

}  // namespace lockstep::checkpoint
