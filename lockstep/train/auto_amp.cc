#include "lockstep/train/auto_amp.h"

#include "lockstep/amp/auto_level.h"
#include "lockstep/base/error.h"
#include "lockstep/comm/text_exchange.h"

namespace lockstep::train {
namespace {

using amp::AmpLevel;
using amp::HalfType;

// "O1 fp16 5.1 times fp32 here".
std::string to_text(const amp::AutoChoice& choice) {
  return cat(choice.policy.casts() ? "O1" : "O0", choice.policy.dtype == at::kHalf ? " fp16 " : " bf16 ", choice.why);
}

ResolvedAmp from_text(const std::string& text) {
  return {text.substr(0, 2) == "O1" ? AmpLevel::kO1 : AmpLevel::kO0,
          text.substr(3, 4) == "fp16" ? HalfType::kFp16 : HalfType::kBf16, text.substr(8)};
}

amp::AutoChoice choose(HalfType dtype) {
  if (dtype == HalfType::kBf16) return amp::auto_level();
  amp::Rates rates = amp::rates_of_this_machine();
  rates.bf16 = 0;
  return amp::auto_level(rates);
}

}  // namespace

ResolvedAmp resolve_amp(HalfType dtype, DeviceKind device, World& world) {
  if (device == DeviceKind::kCuda) return {AmpLevel::kO1, dtype, "on a GPU"};
  const std::string own = world.rank() == 0 ? to_text(choose(dtype)) : "";
  return from_text(comm::gather_texts(world.communicator(), own).at(0));
}

ResolvedAmp amp_of_checkpoint(const Origin& origin) {
  const std::string& keep = origin.option("keep-batchnorm-fp32");
  ResolvedAmp resolved{config::read_enum<AmpLevel>("amp", origin.option("amp")),
                       config::read_enum<HalfType>("dtype", origin.option("dtype")), "as in the checkpoint"};
  if (!keep.empty()) resolved.keep_batchnorm_fp32 = config::read_switch("keep-batchnorm-fp32", keep);
  return resolved;
}

ResolvedAmp amp_of_evaluation(const amp::RecordedPrecisionOptions& given, const std::optional<Origin>& origin,
                              DeviceKind device, World& world) {
  ResolvedAmp resolved{AmpLevel::kO0, HalfType::kBf16, ""};
  if (given.amp) {
    resolved.level = *given.amp;
  } else if (origin) {
    resolved = amp_of_checkpoint(*origin);
    resolved.why = "as in the run";
  }
  if (given.dtype && !given.amp && resolved.level == AmpLevel::kO0) {
    throw ConfigError("--dtype ", config::word_of(*given.dtype), " goes with --amp, and ",
                      origin ? "the run had none" : "the checkpoint is of no run", "; add --amp, or leave it out");
  }
  if (given.dtype) resolved.dtype = *given.dtype;
  if (resolved.level == AmpLevel::kAuto) return resolve_amp(resolved.dtype, device, world);
  return resolved;
}

}  // namespace lockstep::train
