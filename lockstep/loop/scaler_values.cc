#include "lockstep/loop/scaler_values.h"

namespace lockstep::loop {

using checkpoint::Value;

checkpoint::Dict scaler_to_dict(const amp::LossScaler& scaler) {
  if (!scaler.enabled()) return {};
  checkpoint::Dict dict;
  for (const auto& [name, value] : amp::full_state(scaler)) {
    const bool is_real = name == "scale" || name == "loss_scale" || name.ends_with("_factor");
    dict.set(name, is_real ? Value(value) : Value(static_cast<int64_t>(value)));  // the others count
  }
  return dict;
}

void scaler_from_dict(const checkpoint::ValueView& saved, amp::LossScaler& scaler) {
  if (!scaler.options().dynamic || saved.dict().empty()) return;
  amp::ScalerDict numbers;
  for (const auto& entry : saved.dict()) {
    const std::string name = checkpoint::key_text(entry.key);
    numbers[name] = saved[name].number();
  }
  amp::load_state(scaler, numbers);
}

}  // namespace lockstep::loop
