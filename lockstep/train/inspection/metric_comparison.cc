#include "lockstep/train/inspection/metric_comparison.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <optional>
#include <tuple>

#include "lockstep/base/error.h"

namespace lockstep::train {
namespace {

using Json = nlohmann::ordered_json;

// Fields that tell of the clock or of the machine.
constexpr std::array kOfTheClock = {"time", "seconds", "samples_per_second", "data_seconds", "data"};
constexpr std::array kOfTheMachine = {"seconds", "images_per_second", "world_size", "decoded"};

struct Record {
  int64_t step = 0;
  std::string kind;  // "train" comes before "eval" of the same step
  Json fields;

  auto place() const { return std::tuple(step, kind != "train", kind); }
};

// The records of one file, in the order of their steps.
class Records {
 public:
  explicit Records(std::string path) : path_(std::move(path)), file_(path_) {
    if (!file_ && errno != ENOENT && errno != ENOTDIR) throw IoError(path_, ": can't be read: ", errno_text(errno));
    next();
  }

  const std::optional<Record>& now() const { return now_; }

  void next() {
    now_.reset();
    for (std::string line; !now_ && std::getline(file_, line);) take(line);
    if (file_.bad()) throw IoError(path_, ": can't be read: ", errno_text(errno));
  }

 private:
  void take(const std::string& line) {
    Json fields = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!fields.is_object() || !fields.contains("step") || !fields["step"].is_number_integer()) return;
    std::string kind = fields.contains("kind") && fields["kind"].is_string() ? fields["kind"].get<std::string>() : "";
    if (kind != "train" && kind != "eval") return;  // how ranks communicated
    if (fields.contains("split") && fields["split"].is_string()) kind += ' ' + fields["split"].get<std::string>();
    const auto step = fields["step"].get<int64_t>();
    now_ = {.step = step, .kind = std::move(kind), .fields = std::move(fields)};
  }

  std::string path_;
  std::ifstream file_;
  std::optional<Record> now_;
};

template <typename Left>
bool is_of(const std::string& name, const Left& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

template <typename Left>
std::vector<TwoValues> differing(const Json& a, const Json& b, const Left& left_out) {
  std::vector<TwoValues> found;
  const auto value = [](const Json& object, const std::string& name) {
    return object.contains(name) ? object.at(name) : Json();
  };
  for (const auto& [name, field] : a.items()) {
    if (!is_of(name, left_out) && field != value(b, name)) found.push_back({name, field, value(b, name)});
  }
  for (const auto& [name, field] : b.items()) {
    if (!is_of(name, left_out) && !a.contains(name)) found.push_back({name, Json(), field});
  }
  return found;
}

}  // namespace

MetricComparison compare_metrics(const std::string& a, const std::string& b) {
  Records left(a), right(b);
  MetricComparison found;
  while (left.now() || right.now()) {
    if (!right.now() || (left.now() && left.now()->place() < right.now()->place())) {
      found.only_a.add(left.now()->step);
      left.next();
    } else if (!left.now() || right.now()->place() < left.now()->place()) {
      found.only_b.add(right.now()->step);
      right.next();
    } else {
      ++found.records;
      auto fields = differing(left.now()->fields, right.now()->fields, kOfTheClock);
      if (!fields.empty() && found.differing++ == 0) {
        found.step = left.now()->step;
        found.kind = left.now()->kind;
        found.fields = std::move(fields);
      }
      left.next();
      right.next();
    }
  }
  return found;
}

std::vector<TwoValues> compare_results(const Json& a, const Json& b) { return differing(a, b, kOfTheMachine); }

}  // namespace lockstep::train
