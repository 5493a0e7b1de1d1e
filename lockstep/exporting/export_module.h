// Networks as files for other programs: ONNX, which ONNX Runtime and many more compute, and TorchScript, which PyTorch
// and libtorch load without the network's code.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/exporting/forward.h"

namespace lockstep {

enum class ExportFormat { kOfName, kOnnx, kTorchScript };  // kOfName: .onnx, or .pt and .ts for TorchScript

struct ExportOptions {
  ExportFormat format = ExportFormat::kOfName;
  bool any_batch = true;         // for batches of any size; else of the example's
  bool any_size = false;         // for images of other heights and widths [N, C, H, W]; of a network that takes them
  int64_t size_step = 32;        // pixels that such sizes are to be multiples of, for the check
  bool fold_batch_norm = false;  // into the convolutions before
  std::vector<std::pair<std::string, std::string>> metadata;  // keys and values: ONNX's metadata_props, files in a .pt
};

// Writes what `forward` computes with the module's parameters as the file `path`, which is replaced whole. `examples`
// are inputs of the shapes and dtypes that it takes: fp32 or int64, on the CPU; any values. It has one output. In an
// ONNX file inputs are called "input" ("input1", "input2", … of several) and the output "output", and parameters and
// buffers have their names.
//
// The module, fp32 on the CPU, is put into eval mode for the call, and is otherwise left as it is; no other thread may
// use it. The operations are recorded once and then computed for another batch too. Throws ConfigError where they give
// another result than `forward` there, because a size has become a number or another branch is taken; where ONNX has no
// translation for one of them; or where the file's name says no format. Throws IoError if it can't be written.
void export_module(torch::nn::Module& module, const exporting::Forward& forward,
                   const std::vector<at::Tensor>& examples, const std::string& path, const ExportOptions& options = {});

// Of a network that takes one input: export_module(*net, [&](const at::Tensor& x) { return net->forward(x); }, x,
// path).
void export_module(torch::nn::Module& module, const std::function<at::Tensor(const at::Tensor& input)>& forward,
                   const at::Tensor& example, const std::string& path, const ExportOptions& options = {});

// The format of a file's name. Throws ConfigError for a name that says none.
ExportFormat export_format(const std::string& path);

}  // namespace lockstep
