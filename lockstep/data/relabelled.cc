#include "lockstep/data/relabelled.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/base/text.h"
#include "lockstep/data/wrapped.h"

namespace lockstep::data {
namespace {

constexpr size_t kMostNamed = 8;  // classes in an error

size_t place_of_target(const std::vector<Field>& fields) {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [](const Field& each) { return each.name == "target"; });
  if (found == fields.end() || found->dtype != at::kLong) {
    throw ConfigError("a data set whose classes are renumbered needs an int64 field \"target\"");
  }
  return static_cast<size_t>(found - fields.begin());
}

class Relabelled final : public Wrapped {
 public:
  // Class c of `base` becomes new_number[c] of `classes`.
  Relabelled(std::shared_ptr<const Dataset> base, std::vector<int64_t> new_number, Classes classes)
      : Wrapped(std::move(base)),
        new_number_(std::move(new_number)),
        classes_(std::move(classes)),
        target_(place_of_target(Wrapped::fields())) {}

  void read(int64_t index, const Draw& draw, std::span<const at::Tensor> rows, ReadStats& stats) const override {
    base().read(index, draw, rows, stats);
    auto* const first = rows[target_].mutable_data_ptr<int64_t>();
    std::for_each(first, first + rows[target_].numel(), [this](int64_t& number) { number = renumbered(number); });
  }

  std::string fingerprint() const override {
    std::string text = base().fingerprint() + ", renumbered";
    for (const int64_t number : new_number_) text += cat(' ', number);
    return text;
  }

  int64_t classes() const override { return classes_.count; }
  std::vector<std::string> class_names() const override { return classes_.names; }
  int64_t class_of(int64_t index) const override { return renumbered(base().class_of(index)); }

 private:
  // Numbers that are no class stay, such as those of pixels that a loss leaves out.
  int64_t renumbered(int64_t number) const {
    return number < 0 || number >= std::ssize(new_number_) ? number : new_number_[static_cast<size_t>(number)];
  }

  std::shared_ptr<const Dataset> around(std::shared_ptr<const Dataset> base) const override {
    return std::make_shared<Relabelled>(std::move(base), new_number_, classes_);
  }

  std::vector<int64_t> new_number_;
  Classes classes_;
  size_t target_;  // its place among the fields
};

// Says where the class is, and what to do.
[[noreturn]] void throw_unknown(const Dataset& data, const std::string& name, const Classes& wanted) {
  const std::vector<Field> fields = data.fields();
  const bool masks = !fields[place_of_target(fields)].shape.empty();
  throw DataError(data.description(), masks ? ": masks have the class " : ": has the class ", name,
                  ", which is none of the network's ", wanted.names.size(), " (",
                  first_few(wanted.names, kMostNamed, std::identity()), "); ",
                  masks ? "store its pixels as one of these, or leave out the pictures that have it" : "remove it");
}

std::vector<int64_t> numbers_by_name(const Dataset& data, const Classes& own, const Classes& wanted) {
  std::vector<int64_t> numbers;
  for (const std::string& name : own.names) {
    const auto found = std::find(wanted.names.begin(), wanted.names.end(), name);
    if (found == wanted.names.end()) throw_unknown(data, name, wanted);
    numbers.push_back(found - wanted.names.begin());
  }
  return numbers;
}

}  // namespace

Classes classes_of(const Dataset& data) {
  Classes classes{.count = data.classes(), .names = data.class_names()};
  for (std::string& name : classes.names) name = shown(name);
  return classes;
}

std::shared_ptr<const Dataset> relabelled(std::shared_ptr<const Dataset> data, const Classes& wanted) {
  const Classes own = classes_of(*data);
  if (own.count == wanted.count && (own.names == wanted.names || own.names.empty() || wanted.names.empty()))
    return data;
  std::vector<int64_t> numbers;
  if (!own.names.empty() && !wanted.names.empty()) {
    numbers = numbers_by_name(*data, own, wanted);
  } else {
    if (own.count > wanted.count) {
      throw DataError(
          data->description(), ": has ", own.count, " classes, and the network ", wanted.count,
          "; give it data of its own classes; a data set of one's own whose last classes had no sample in training "
          "says their number (TensorDataset's option classes)");
    }
    numbers.resize(static_cast<size_t>(own.count));
    std::iota(numbers.begin(), numbers.end(), 0);
  }
  return std::make_shared<Relabelled>(std::move(data), std::move(numbers), wanted);
}

}  // namespace lockstep::data
