#include "lockstep/track/tensorboard_sink.h"

#include "lockstep/base/text.h"
#include "lockstep/track/flat.h"
#include "lockstep/track/wall_time.h"

namespace lockstep::track {
namespace {

// The numbers of the fields in tensorflow's summary.proto and tensor.proto, by message.
namespace summary {
constexpr int kValue = 1;
}
namespace value {
constexpr int kTag = 1, kNumber = 2, kImage = 4, kHistogram = 5, kTensor = 8, kMetadata = 9;
}
namespace image {
constexpr int kHeight = 1, kWidth = 2, kColours = 3, kBytes = 4;
constexpr int64_t kRgb = 3;
}  // namespace image
namespace histo {
constexpr int kMin = 1, kMax = 2, kCount = 3, kSum = 4, kSumOfSquares = 5, kLimits = 6, kCounts = 7;
}
namespace tensor {
constexpr int kType = 1, kShape = 2, kTexts = 8;
constexpr int kDimension = 2, kSize = 1;  // of the shape
constexpr int64_t kFloat = 1, kString = 7;
}  // namespace tensor
namespace metadata {
constexpr int kPlugin = 1, kClass = 4;
constexpr int kName = 1, kContent = 2;  // of the plug-in's part
constexpr int64_t kTensorClass = 2;
}  // namespace metadata
// And in the HParams plug-in's.
namespace hparams {
constexpr int kExperiment = 2, kBegin = 3, kEnd = 4;
constexpr int kParameterInfo = 4, kMetricInfo = 5;  // of the experiment
constexpr int kInfoName = 1, kInfoType = 4, kMetricName = 1, kTag = 2;
constexpr int kParameters = 1, kBeganAt = 5, kKey = 1, kMapped = 2;  // of the begin
constexpr int kNumber = 2, kText = 3, kTruth = 4;                    // of google.protobuf.Value
constexpr int64_t kTextType = 1, kTruthType = 2, kNumberType = 3;
constexpr int kStatus = 1, kEndedAt = 2;  // of the end
constexpr int64_t kSuccess = 1;
}  // namespace hparams

// What a tensor's value is to the plug-in that shows it.
ProtoWriter metadata_of(const std::string& plugin, const std::string& content = "") {
  ProtoWriter part;
  part.text(metadata::kName, plugin);
  if (!content.empty()) part.text(metadata::kContent, content);
  return ProtoWriter().message(metadata::kPlugin, part);
}

ProtoWriter shape_of(int64_t size) {
  return ProtoWriter().message(tensor::kDimension, ProtoWriter().whole(tensor::kSize, size));
}

// A value for the HParams plug-in is in its metadata; its tensor is empty.
ProtoWriter hparams_value(const char* name, int field, const ProtoWriter& content) {
  const ProtoWriter none = ProtoWriter().whole(tensor::kType, tensor::kFloat).message(tensor::kShape, shape_of(0));
  return ProtoWriter()
      .text(value::kTag, cat("_hparams_/", name))
      .message(value::kMetadata, metadata_of("hparams", ProtoWriter().message(field, content).bytes()))
      .message(value::kTensor, none);
}

int64_t type_of(const HyperParameter& parameter) {
  if (std::holds_alternative<bool>(parameter.second)) return hparams::kTruthType;
  return std::holds_alternative<double>(parameter.second) ? hparams::kNumberType : hparams::kTextType;
}

ProtoWriter value_of(const HyperParameter& parameter) {
  if (const auto* truth = std::get_if<bool>(&parameter.second)) {
    return ProtoWriter().whole(hparams::kTruth, *truth ? 1 : 0);
  }
  if (const auto* number = std::get_if<double>(&parameter.second)) return ProtoWriter().real(hparams::kNumber, *number);
  return ProtoWriter().text(hparams::kText, std::get<std::string>(parameter.second));
}

}  // namespace

void TensorboardSink::write(const Record& record) {
  const auto kind = record.value("kind", std::string("train"));
  const std::string group = kind == "eval" ? record.value("split", kind) : kind;
  ProtoWriter all;
  for (const auto& [name, number] : flat(record, '/')) {
    if (name == "step" || name == "time" || !(number.is_number() || number.is_boolean())) continue;
    const auto shown = number.is_boolean() ? static_cast<float>(number.get<bool>()) : number.get<float>();
    all.message(summary::kValue, ProtoWriter().text(value::kTag, cat(group, '/', name)).real32(value::kNumber, shown));
  }
  file_.summary(record.value("step", int64_t{0}), record.value("time", wall_seconds()), all);
}

void TensorboardSink::put(int64_t step, const ProtoWriter& value) {
  file_.summary(step, wall_seconds(), ProtoWriter().message(summary::kValue, value));
}

void TensorboardSink::text(const std::string& tag, int64_t step, const std::string& markdown) {
  ProtoWriter about = metadata_of("text");
  about.whole(metadata::kClass, metadata::kTensorClass);
  const ProtoWriter content = ProtoWriter()
                                  .whole(tensor::kType, tensor::kString)
                                  .message(tensor::kShape, shape_of(1))
                                  .text(tensor::kTexts, markdown);
  put(step, ProtoWriter().text(value::kTag, tag).message(value::kMetadata, about).message(value::kTensor, content));
}

void TensorboardSink::histogram(const std::string& tag, int64_t step, const Histogram& histogram) {
  const ProtoWriter content = ProtoWriter()
                                  .real(histo::kMin, histogram.min)
                                  .real(histo::kMax, histogram.max)
                                  .real(histo::kCount, static_cast<double>(histogram.count))
                                  .real(histo::kSum, histogram.sum)
                                  .real(histo::kSumOfSquares, histogram.sum_of_squares)
                                  .reals(histo::kLimits, histogram.limits)
                                  .reals(histo::kCounts, histogram.counts);
  put(step, ProtoWriter().text(value::kTag, tag).message(value::kHistogram, content));
}

void TensorboardSink::picture(const std::string& tag, int64_t step, const Picture& picture) {
  const ProtoWriter content = ProtoWriter()
                                  .whole(image::kHeight, picture.height)
                                  .whole(image::kWidth, picture.width)
                                  .whole(image::kColours, image::kRgb)
                                  .text(image::kBytes, picture.png);
  put(step, ProtoWriter().text(value::kTag, tag).message(value::kImage, content));
}

void TensorboardSink::begin(const std::vector<HyperParameter>& parameters, const std::vector<std::string>& metrics) {
  ProtoWriter experiment, begun;
  for (const HyperParameter& each : parameters) {
    experiment.message(hparams::kParameterInfo,
                       ProtoWriter().text(hparams::kInfoName, each.first).whole(hparams::kInfoType, type_of(each)));
    begun.message(hparams::kParameters,
                  ProtoWriter().text(hparams::kKey, each.first).message(hparams::kMapped, value_of(each)));
  }
  for (const std::string& tag : metrics) {
    const ProtoWriter name = ProtoWriter().text(hparams::kTag, tag);
    experiment.message(hparams::kMetricInfo, ProtoWriter().message(hparams::kMetricName, name));
  }
  begun.real(hparams::kBeganAt, wall_seconds());
  put(0, hparams_value("experiment", hparams::kExperiment, experiment));
  put(0, hparams_value("session_start_info", hparams::kBegin, begun));
}

void TensorboardSink::end() {
  const ProtoWriter ended =
      ProtoWriter().whole(hparams::kStatus, hparams::kSuccess).real(hparams::kEndedAt, wall_seconds());
  put(0, hparams_value("session_end_info", hparams::kEnd, ended));
}

}  // namespace lockstep::track
