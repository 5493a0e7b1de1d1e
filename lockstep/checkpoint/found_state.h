// The state dicts of a file that may hold more than one model's weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

struct FoundState {
  Dict state;
  std::string name;                      // under which the file has it; empty for the file's own tensors
  std::vector<std::string> others = {};  // names of other state dicts and averages that it has
};

// Which of a file's weights are meant: the model's, or their average, under "ema", timm's "state_dict_ema" or
// torchvision's "model_ema".
enum class Average { kOff, kWhereThere, kOn };

// Finds the model's state dict: the tensors under "model", "model_state_dict", "state_dict" (Lightning's, timm's) or
// another name that is usual, else the file's own; or their average. Other values beside the tensors, such as
// milesial's "mask_values", are left out of the file's own alone. Nothing if there is none.
std::optional<FoundState> search_state(const Value& root, Average average = Average::kOff);

// The same. Throws DataError that names `file` and says what it holds instead, ConfigError where it lacks an average
// that must be there.
FoundState find_state(const Value& root, const std::string& file, Average average = Average::kOff);
// Its tensors alone.
Dict find_model_state(const Value& root, const std::string& file, Average average = Average::kOff);
Dict tensors_of(const Dict& state);

}  // namespace lockstep::checkpoint
