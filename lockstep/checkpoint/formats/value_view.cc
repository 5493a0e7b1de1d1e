#include "lockstep/checkpoint/formats/value_view.h"

#include <cmath>

#include "lockstep/checkpoint/formats/printable.h"
#include "lockstep/checkpoint/formats/stored_tensor.h"

namespace lockstep::checkpoint {

ValueView ValueView::step(const Value& value, const std::string& name) const {
  ValueView next(value, file_);
  next.path_ = path_.empty() ? printable(name) : cat(path_, "/", printable(name));
  return next;
}

std::string ValueView::where() const { return path_.empty() ? file_ : cat(file_, ": ", path_); }

void ValueView::wrong(std::string_view expected) const {
  throw DataError(where(), ": expected ", expected, ", found ", value_->kind());
}

ValueView ValueView::operator[](const Key& key) const {
  const Value* value = dict().find(key);
  if (value == nullptr) throw DataError(where(), ": has no \"", printable(key_text(key)), "\"");
  return step(*value, key_text(key));
}

std::optional<ValueView> ValueView::find(const Key& key) const {
  const Value* value = dict().find(key);
  if (value == nullptr || value->is_none()) return std::nullopt;
  return step(*value, key_text(key));
}

std::vector<ValueView> ValueView::items() const {
  const List* list = value_->items();
  if (list == nullptr) wrong("a list");
  std::vector<ValueView> views;
  views.reserve(list->size());
  for (size_t i = 0; i < list->size(); ++i) views.push_back(step((*list)[i], std::to_string(i)));
  return views;
}

bool ValueView::boolean() const {
  const auto* boolean = value_->get_if<bool>();
  if (boolean == nullptr) wrong("true or false");
  return *boolean;
}

int64_t ValueView::integer() const {
  if (const auto* whole = value_->get_if<int64_t>()) return *whole;
  const auto* number = value_->get_if<double>();
  // 2^63 is a double and just too large
  if (number == nullptr || std::trunc(*number) != *number || !(std::abs(*number) < 0x1p63)) wrong("a whole number");
  return static_cast<int64_t>(*number);
}

double ValueView::number() const {
  if (const auto* whole = value_->get_if<int64_t>()) return static_cast<double>(*whole);
  const auto* number = value_->get_if<double>();
  if (number == nullptr) wrong("a number");
  return *number;
}

const std::string& ValueView::text() const {
  const auto* text = value_->get_if<std::string>();
  if (text == nullptr) wrong("a string");
  return *text;
}

const at::Tensor& ValueView::tensor() const {
  const auto* tensor = value_->get_if<at::Tensor>();
  if (tensor == nullptr) wrong("a tensor");
  bring_into_memory(*tensor);
  return *tensor;
}

const Dict& ValueView::dict() const {
  const auto* dict = value_->get_if<Dict>();
  if (dict == nullptr) wrong("a dict");
  return *dict;
}

}  // namespace lockstep::checkpoint
