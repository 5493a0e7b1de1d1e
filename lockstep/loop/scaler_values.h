// A loss scaler's state in a checkpoint: a dict that Apex's amp.load_state_dict and torch's GradScaler.load_state_dict
// both take.
#pragma once

#include "lockstep/amp/loss_scaler.h"
#include "lockstep/checkpoint/formats/value.h"
#include "lockstep/checkpoint/formats/value_view.h"

namespace lockstep::loop {

// Empty for a scaler that is not enabled.
checkpoint::Dict scaler_to_dict(const amp::LossScaler& scaler);

// Loads a dynamic scale. A static one is the options', and an empty dict says nothing. Throws ConfigError, DataError.
void scaler_from_dict(const checkpoint::ValueView& saved, amp::LossScaler& scaler);

}  // namespace lockstep::loop
