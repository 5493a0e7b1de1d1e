#include "lockstep/datasets/scan_masks.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "lockstep/base/error.h"
#include "lockstep/datasets/files/file_bytes.h"
#include "lockstep/image/decoder.h"

namespace lockstep::datasets {
namespace {

constexpr size_t kMostClasses = 256;

using Values = std::set<uint32_t>;

// Decodes masks one after the other. One thread.
class Scanner {
 public:
  explicit Scanner(const Pairs& pairs) : pairs_(pairs) {}

  // The values of one mask.
  Values values_of(size_t index) {
    const std::string path = pairs_.path + "/" + pairs_.pairs[index].mask;
    decoder_.open(read_whole(path, bytes_), shown(path));
    decoder_.decode_values(pixels_);
    Values values;
    uint32_t last = pixels_.front() + 1;
    for (const uint32_t value : pixels_) {
      if (value == last) continue;
      last = value;
      if (values.insert(value).second && values.size() > kMostClasses) throw_too_many(path);
    }
    return values;
  }

  [[noreturn]] static void throw_too_many(const std::string& path) {
    throw DataError(shown(path), ": with this mask there are more than ", kMostClasses,
                    " values, and each would be a class; masks that were stored as JPEG or resized smoothly have such "
                    "values: store them as PNG");
  }

 private:
  const Pairs& pairs_;
  image::Decoder decoder_;
  std::vector<uint8_t> bytes_;
  std::vector<uint32_t> pixels_;
};

// The first error by place, so that the same one is told at any number of threads.
struct FirstError {
  size_t index = SIZE_MAX;
  std::exception_ptr error;
};

}  // namespace

std::vector<uint32_t> scan_masks(const Pairs& pairs, int threads) {
  const size_t count = pairs.pairs.size();
  std::vector<Values> of_mask(count);
  std::atomic<size_t> next{0};
  std::mutex mutex;
  FirstError first;
  const auto work = [&] {
    Scanner scanner(pairs);
    for (size_t index = next++; index < count; index = next++) {
      try {
        of_mask[index] = scanner.values_of(index);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (index < first.index) first = {index, std::current_exception()};
        next = count;  // those before it are at work already
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < std::min<int>(threads, static_cast<int>(count)); ++i) others.emplace_back(work);
    work();
  }
  Values all;
  for (size_t index = 0; index < std::min(count, first.index); ++index) {
    all.insert(of_mask[index].begin(), of_mask[index].end());
    if (all.size() > kMostClasses) Scanner::throw_too_many(pairs.path + "/" + pairs.pairs[index].mask);
  }
  if (first.error) std::rethrow_exception(first.error);
  return {all.begin(), all.end()};
}

image::LabelMap labels_of(const Pairs& pairs, int threads, const data::OnOneRank& on_one_rank) {
  const auto scan = [&] {
    std::string text;
    for (const uint32_t value : scan_masks(pairs, threads)) text += cat(value, " ");
    return text;
  };
  std::istringstream text(on_one_rank ? on_one_rank(scan) : scan());
  std::vector<uint32_t> values;
  for (uint32_t value = 0; text >> value;) values.push_back(value);
  if (values.size() < 2) {
    throw DataError(shown(pairs.path), ": all masks have one value alone (", values.empty() ? 0 : values[0],
                    "), so that there is nothing to tell apart; are these the masks?");
  }
  return image::LabelMap(std::move(values));
}

std::string text_of(const image::LabelMap& labels) {
  constexpr size_t kMost = 8;
  const auto& values = labels.values();
  std::string text = "masks: ";
  for (size_t i = 0; i < std::min(kMost, values.size()); ++i) {
    text += cat(i == 0 ? "" : ", ", values[i], " -> class ", i);
  }
  return values.size() > kMost ? cat(text, ", … (", values.size(), " classes)") : text;
}

}  // namespace lockstep::datasets
