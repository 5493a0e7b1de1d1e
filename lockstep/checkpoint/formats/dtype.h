// Element types by PyTorch's names, in text and in pickles.
#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

namespace lockstep::checkpoint {

// "float32" for at::kFloat, as PyTorch prints it without "torch."; throws BugError for a type that files do not hold.
std::string_view dtype_name(at::ScalarType dtype);

// at::kFloat for "float32"; nothing for an unknown name.
std::optional<at::ScalarType> dtype_by_name(std::string_view name);

// "FloatStorage" for at::kFloat; empty for types without a storage class of their own (uint16, float8 …), whose bytes
// an UntypedStorage holds.
std::string_view storage_class(at::ScalarType dtype);

// at::kFloat for "FloatStorage", at::kByte for "UntypedStorage"; nothing for an unknown name.
std::optional<at::ScalarType> dtype_of_storage_class(std::string_view name);

}  // namespace lockstep::checkpoint
