// What a step does and when, as a file for chrome://tracing or ui.perfetto.dev.
#pragma once

#include <string>

namespace lockstep::worker {

// Records libtorch's operations, and on a GPU its kernels and copies, from its making to write(). One at a time in a
// process, made and written on the thread that trains; autograd's threads are recorded too. By libtorch's own profiler,
// torch.profiler's in PyTorch.
class StepTrace {
 public:
  explicit StepTrace(bool gpu);
  ~StepTrace();
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  // Ends the recording. Throws IoError if the file can't be written.
  void write(const std::string& path);

 private:
  bool recording_ = true;
};

}  // namespace lockstep::worker
