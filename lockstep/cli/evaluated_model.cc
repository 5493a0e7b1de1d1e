#include "lockstep/cli/evaluated_model.h"

#include "lockstep/amp/auto_level.h"
#include "lockstep/amp/cast_model.h"
#include "lockstep/amp/rates.h"
#include "lockstep/base/cpu_features.h"
#include "lockstep/cli/ranks.h"
#include "lockstep/train/device_facts.h"
#include "lockstep/train/setup.h"
#include "lockstep/world/seeds.h"

namespace lockstep::cli {

amp::Policy policy_of(const train::ResolvedAmp& resolved) {
  amp::Options options = train::amp_options(resolved.level, resolved.dtype);
  options.keep_batchnorm_fp32 = resolved.keep_batchnorm_fp32;
  return amp::make_policy(options);
}

c10::Device open_own_device(const train::DeviceChoice& wanted, World& world, const Logger& log) {
  const c10::Device device = open_device(wanted, train::node_ranks(world, /*may_share=*/false), log);
  train::shared_gpus(world, device, train::facts_of(device), /*may_share=*/false);
  if (!device.is_cpu()) init_seeds(/*seed=*/0, /*deterministic=*/true);
  return device;
}

checkpoint::LoadModelOptions ModelFile::options() const {
  using checkpoint::Average, train::TakesAverage;
  const TakesAverage asked = weights.average;
  return {.file = name,
          .strip_prefix = weights.strip_prefix,
          .average = asked == TakesAverage::kOn    ? Average::kOn
                     : asked == TakesAverage::kOff ? Average::kOff
                                                   : Average::kWhereThere,
          .paddle = is_paddle};
}

std::string load_for_evaluation(const train::Model& model, const ModelFile& file, const ModelPlace& place,
                                const World& world, const Logger& log, const data::Dataset* data) {
  const auto loaded = train::load_model(*model.module, file.root, file.options(), data);
  if (const std::string told = loaded.report.text(); world.rank() == 0 && !told.empty()) {
    log.info(file.name, ": took ", told);
  }
  const std::string slow = amp::slow_warning(place.amp, detect_cpu_features(), amp::read_rates(amp::cache_folder()));
  if (world.rank() == 0 && place.device.is_cpu() && !slow.empty()) log.warning(slow);
  model.module->to(place.device);
  train::set_memory_format(*model.module, place.channels_last);
  amp::cast_models({model.module.get()}, place.amp);
  return loaded.report.name;
}

}  // namespace lockstep::cli
