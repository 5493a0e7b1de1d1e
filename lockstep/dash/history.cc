#include "lockstep/dash/history.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <set>
#include <string_view>

#include "lockstep/base/shared_memory.h"
#include "lockstep/dash/bounded_json.h"
#include "lockstep/track/flat.h"

namespace lockstep::dash {
namespace {

// A run that goes on from an earlier step writes the later ones once more.
void add(Curve& curve, int64_t step, double value) {
  while (!curve.steps.empty() && curve.steps.back() >= step) {
    curve.steps.pop_back();
    curve.values.pop_back();
  }
  if (!std::isfinite(value)) {
    ++curve.not_finite;
    return;
  }
  curve.steps.push_back(step);
  curve.values.push_back(value);
}

// JSON has no NaN: what is not finite is written as null.
bool is_value(const track::Record& value) { return value.is_number() || value.is_boolean() || value.is_null(); }

double number_of(const track::Record& value) {
  if (value.is_null()) return NAN;
  return value.is_boolean() ? static_cast<double>(value.get<bool>()) : value.get<double>();
}

}  // namespace

void History::refresh() {
  const Descriptor file(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat now {};
  if (!file || fstat(file.get(), &now) != 0) return;
  if (now.st_ino != inode_ || now.st_size < read_) {
    curves_.clear();
    half_.clear();
    read_ = 0;
    inode_ = now.st_ino;
  }
  std::string buffer(size_t{1} << 16, '\0');
  for (ssize_t count = 0; (count = pread(file.get(), buffer.data(), buffer.size(), read_)) > 0; read_ += count) {
    size_t begin = 0, end = half_.size();  // which has no newline
    half_.append(buffer, 0, static_cast<size_t>(count));
    for (; (end = half_.find('\n', end)) != std::string::npos; begin = ++end) {
      take(bounded_json(std::string_view(half_).substr(begin, end - begin)));
    }
    half_.erase(0, begin);
    if (half_.size() > kMostJsonBytes) half_.resize(kMostJsonBytes + 1);  // no record, however long it gets
  }
}

void History::take(const track::Record& record) {
  static const std::set<std::string, std::less<>> kNoCurves = {"kind", "split", "step", "epoch", "time", "samples"};
  if (!record.is_object()) return;
  const auto text = [&record](const char* name) {
    const auto found = record.find(name);
    return found != record.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const auto step = record.find("step");
  const std::string kind = text("kind"), split = text("split");
  if (kind.empty() || step == record.end() || !step->is_number_integer()) return;
  const auto number = step->get<int64_t>();
  for (const auto& [name, value] : track::flat(record, '.')) {
    if (kNoCurves.contains(name) || !is_value(value)) continue;
    add(curves_[kind + (split.empty() ? "/" : "/" + split + '/') + name], number, number_of(value));
  }
}

}  // namespace lockstep::dash
