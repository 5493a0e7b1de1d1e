#include "lockstep/exporting/export_module.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/jit/serialization/export.h>

#include "lockstep/base/error.h"
#include "lockstep/base/version.h"
#include "lockstep/checkpoint/files/atomic_file.h"
#include "lockstep/exporting/fold_batch_norm.h"
#include "lockstep/exporting/onnx_model.h"
#include "lockstep/exporting/to_onnx.h"
#include "lockstep/exporting/trace.h"
#include "lockstep/nn/eval_mode.h"

namespace lockstep {
namespace {

using exporting::Forward;
using exporting::Trace;

// Inputs of other values than the examples, `more` samples more, and `higher` and `wider` images.
std::vector<at::Tensor> others(const std::vector<at::Tensor>& examples, int64_t more, int64_t higher = 0,
                               int64_t wider = 0) {
  const at::Generator generator = at::detail::createCPUGenerator(/*seed=*/1);
  std::vector<at::Tensor> inputs;
  for (const at::Tensor& example : examples) {
    std::vector<int64_t> sizes = example.sizes().vec();
    if (!sizes.empty()) sizes[0] += more;
    if (sizes.size() == 4) sizes[2] += higher, sizes[3] += wider;
    if (example.is_floating_point()) {
      inputs.push_back(at::randn(sizes, generator, example.options()));
    } else {
      const int64_t most = example.numel() == 0 ? 0 : example.max().item<int64_t>();  // an index that there is
      inputs.push_back(at::randint(0, most + 1, sizes, generator, example.options()));
    }
  }
  return inputs;
}

std::vector<at::Tensor> of_other_size(const std::vector<at::Tensor>& examples, const ExportOptions& options) {
  return others(examples, 0, options.size_step, 2 * options.size_step);
}

void check(const Trace& trace, const Forward& forward, const std::vector<at::Tensor>& examples,
           const ExportOptions& options) {
  const int64_t more = options.any_batch ? 1 : 0;
  exporting::check_trace(trace, forward, others(examples, more), more > 0 ? "another batch" : "other inputs");
  if (options.any_size) {
    try {
      forward(of_other_size(examples, options));
    } catch (const std::exception& error) {
      throw ConfigError("export: the network takes images of one size alone, so that it can't be one for any size: ",
                        first_line(error.what()));
    }
    exporting::check_trace(trace, forward, of_other_size(examples, options), "images of another size");
  }
}

void write_torch_script(const Trace& trace, const std::string& path, const ExportOptions& options) {
  const torch::jit::ExtraFilesMap files(options.metadata.begin(), options.metadata.end());
  checkpoint::write_atomically(path, [&](checkpoint::ByteSink& file) {
    const auto write = [&](const void* bytes, size_t count) {
      file.write({static_cast<const char*>(bytes), count});
      return count;
    };
    torch::jit::ExportModule(trace.module, write, files);
  });
}

// `another` is the trace of inputs of other sizes.
void write_onnx_file(const Trace& trace, const Trace& another, const std::string& path, const ExportOptions& options) {
  const exporting::OnnxOptions how{.any_batch = options.any_batch, .any_size = options.any_size};
  exporting::OnnxModel model = exporting::to_onnx(trace, how);
  if (!exporting::same_operators(model, exporting::to_onnx(another, how))) {
    throw ConfigError("export: a size of the input becomes a number of the ONNX file; fix the batch and the size, or ",
                      "write TorchScript");
  }
  model.version = version();
  model.metadata = options.metadata;
  checkpoint::write_atomically(path, [&](checkpoint::ByteSink& file) { exporting::write_onnx(model, path, file); });
}

}  // namespace

ExportFormat export_format(const std::string& path) {
  if (path.ends_with(".onnx")) return ExportFormat::kOnnx;
  if (path.ends_with(".pt") || path.ends_with(".ts")) return ExportFormat::kTorchScript;
  throw ConfigError("export: ", path, ": expected a name that ends in .onnx, or in .pt or .ts for TorchScript");
}

void export_module(torch::nn::Module& module, const Forward& forward, const std::vector<at::Tensor>& examples,
                   const std::string& path, const ExportOptions& options) {
  const ExportFormat format = options.format == ExportFormat::kOfName ? export_format(path) : options.format;
  const nn::EvalMode eval_mode({&module});
  const at::NoGradGuard no_grad;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const auto record = [&](const std::vector<at::Tensor>& inputs) {
    Trace trace = exporting::trace(module, forward, inputs);
    if (options.fold_batch_norm) exporting::fold_batch_norm(trace);
    return trace;
  };
  const Trace trace = record(examples);
  check(trace, forward, examples, options);
  if (format == ExportFormat::kTorchScript) return write_torch_script(trace, path, options);
  const int64_t more = options.any_batch ? 1 : 0, step = options.any_size ? options.size_step : 0;
  write_onnx_file(trace, record(others(examples, more, step, 2 * step)), path, options);
}

void export_module(torch::nn::Module& module, const std::function<at::Tensor(const at::Tensor& input)>& forward,
                   const at::Tensor& example, const std::string& path, const ExportOptions& options) {
  const Forward of_list = [&forward](const std::vector<at::Tensor>& inputs) { return forward(inputs.at(0)); };
  export_module(module, of_list, std::vector<at::Tensor>{example}, path, options);
}

}  // namespace lockstep
