#include "step_trace.h"

#include <torch/csrc/autograd/profiler_kineto.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "lockstep/base/error.h"

namespace lockstep::worker {
namespace {

using torch::profiler::impl::ActivityType;

}  // namespace

StepTrace::StepTrace(bool gpu) {
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  std::set<ActivityType> activities = {ActivityType::CPU};
  if (gpu) activities.insert(ActivityType::CUDA);
  torch::autograd::profiler::prepareProfiler(config, activities);
  torch::autograd::profiler::enableProfiler(config, activities);
}

StepTrace::~StepTrace() {
  if (recording_) torch::autograd::profiler::disableProfiler();
}

void StepTrace::write(const std::string& path) {
  recording_ = false;
  const auto trace = torch::autograd::profiler::disableProfiler();
  // The profiler logs its failures and goes on.
  std::filesystem::remove(path);
  if (!std::ofstream(path)) throw IoError("--trace ", path, ": can't be written: ", errno_text(errno));
  trace->save(path);
  if (std::filesystem::file_size(path) == 0) throw IoError("--trace ", path, ": libtorch's profiler wrote nothing");
}

}  // namespace lockstep::worker
