#include "lockstep/exporting/onnx_model.h"

#include <limits>
#include <string_view>

#include "lockstep/base/error.h"
#include "lockstep/base/proto_writer.h"

namespace lockstep::exporting {
namespace {

// The numbers of fields that onnx.proto gives them. IR version 8 is the one that came with opset 17.
constexpr int64_t kIrVersion = 8;
namespace model_field {
enum { kIrVersion = 1, kProducerName = 2, kProducerVersion = 3, kGraph = 7, kOpsetImport = 8, kMetadata = 14 };
}
namespace graph_field {
enum { kNode = 1, kName = 2, kTensor = 5, kInput = 11, kOutput = 12 };
}
namespace node_field {
enum { kInput = 1, kOutput = 2, kName = 3, kOp = 4, kAttribute = 5 };
}
namespace attribute_field {
enum { kName = 1, kFloat = 2, kInt = 3, kString = 4, kInts = 8, kType = 20 };
}
namespace attribute_type {
enum { kFloat = 1, kInt = 2, kString = 3, kInts = 7 };
}
namespace tensor_field {
enum { kDims = 1, kType = 2, kName = 8, kRaw = 9 };
}

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};
template <typename... Visitors>
Overloaded(Visitors...) -> Overloaded<Visitors...>;

int64_t type_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return 1;
    case at::kInt:
      return 6;
    case at::kLong:
      return 7;
    case at::kBool:
      return 9;
    case at::kDouble:
      return 11;
    default:
      throw ConfigError("export: a tensor of ", dtype, "; expected float32, float64, int64, int32 or bool");
  }
}

std::string message_of(const OnnxAttribute& attribute) {
  namespace field = attribute_field;
  namespace type = attribute_type;
  ProtoWriter out;
  out.text(field::kName, attribute.name);
  std::visit(
      Overloaded{[&](int64_t value) { out.whole(field::kInt, value).whole(field::kType, type::kInt); },
                 [&](float value) { out.real32(field::kFloat, value).whole(field::kType, type::kFloat); },
                 [&](const std::string& value) { out.text(field::kString, value).whole(field::kType, type::kString); },
                 [&](const std::vector<int64_t>& values) {
                   for (const int64_t value : values) out.whole(field::kInts, value);
                   out.whole(field::kType, type::kInts);
                 }},
      attribute.value);
  return out.bytes();
}

std::string message_of(const OnnxNode& node) {
  ProtoWriter out;
  for (const auto& input : node.inputs) out.text(node_field::kInput, input);
  for (const auto& output : node.outputs) out.text(node_field::kOutput, output);
  out.text(node_field::kName, node.outputs.at(0)).text(node_field::kOp, node.op);
  for (const auto& attribute : node.attributes) out.text(node_field::kAttribute, message_of(attribute));
  return out.bytes();
}

// ValueInfoProto of a TypeProto of a Tensor.
std::string message_of(const OnnxPort& port) {
  ProtoWriter shape;
  for (const auto& size : port.shape) {
    ProtoWriter dimension;
    std::visit(Overloaded{[&](int64_t value) { dimension.whole(1, value); },
                          [&](const std::string& name) { dimension.text(2, name); }},
               size);
    shape.text(1, dimension.bytes());
  }
  const ProtoWriter tensor = ProtoWriter().whole(1, type_of(port.dtype)).text(2, shape.bytes());
  const ProtoWriter type = ProtoWriter().text(1, tensor.bytes());
  return ProtoWriter().text(1, port.name).text(2, type.bytes()).bytes();
}

// All of a TensorProto but its bytes, which follow.
std::string head_of(const OnnxTensor& tensor) {
  ProtoWriter out;
  for (const int64_t size : tensor.value.sizes()) out.whole(tensor_field::kDims, size);
  out.whole(tensor_field::kType, type_of(tensor.value.scalar_type())).text(tensor_field::kName, tensor.name);
  return out.begin(tensor_field::kRaw, tensor.value.nbytes()).bytes();
}

// A tensor's field of the graph up to its bytes.
std::string field_of(const OnnxTensor& tensor) {
  const std::string head = head_of(tensor);
  return ProtoWriter().begin(graph_field::kTensor, head.size() + tensor.value.nbytes()).bytes() + head;
}

// All of the graph but its tensors.
std::string graph_of(const OnnxModel& model) {
  ProtoWriter out;
  for (const auto& node : model.nodes) out.text(graph_field::kNode, message_of(node));
  out.text(graph_field::kName, "network");
  for (const auto& port : model.inputs) out.text(graph_field::kInput, message_of(port));
  for (const auto& port : model.outputs) out.text(graph_field::kOutput, message_of(port));
  return out.bytes();
}

ProtoWriter head_of(const OnnxModel& model) {
  namespace field = model_field;
  ProtoWriter out;
  out.whole(field::kIrVersion, kIrVersion).text(field::kProducerName, "lockstep");
  out.text(field::kProducerVersion, model.version);
  out.text(field::kOpsetImport, ProtoWriter().text(1, "").whole(2, kOpset).bytes());
  for (const auto& [key, value] : model.metadata) {
    out.text(field::kMetadata, ProtoWriter().text(1, key).text(2, value).bytes());
  }
  return out;
}

}  // namespace

// The tensors' bytes go from where they are to the file; what lies around them is put together before, for its length.
void write_onnx(const OnnxModel& model, const std::string& name, checkpoint::ByteSink& file) {
  const std::string graph = graph_of(model);
  size_t length = graph.size();
  for (const auto& tensor : model.tensors) length += field_of(tensor).size() + tensor.value.nbytes();
  ProtoWriter head = head_of(model);
  head.begin(model_field::kGraph, length);
  if (const size_t whole = head.bytes().size() + length; whole > std::numeric_limits<int32_t>::max()) {
    throw ConfigError(name, ": the network has ", human_bytes(whole), ", and an ONNX file holds less than 2 GiB; ",
                      "--format torchscript has no such bound");
  }
  file.write(head.bytes());
  file.write(graph);
  for (const auto& tensor : model.tensors) {
    const at::Tensor value = tensor.value.contiguous();
    file.write(field_of(tensor));
    file.write({static_cast<const char*>(value.const_data_ptr()), value.nbytes()});
  }
}

}  // namespace lockstep::exporting
