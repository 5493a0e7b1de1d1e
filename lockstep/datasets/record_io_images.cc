#include "lockstep/datasets/record_io_images.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/data/dataset.h"
#include "lockstep/datasets/packed/record_io.h"

namespace lockstep::datasets {
namespace {

std::string text_of(const std::vector<RecordPlace>& places) {
  std::string text;
  for (const RecordPlace& place : places) text += cat(place.offset, ' ', place.bytes, ' ', place.class_number, '\n');
  return text;
}

std::vector<RecordPlace> places_of(const std::string& text) {
  std::istringstream lines(text);
  std::vector<RecordPlace> places;
  for (RecordPlace place; lines >> place.offset >> place.bytes >> place.class_number;) places.push_back(place);
  return places;
}

class RecordIoImages final : public ImageSource {
 public:
  RecordIoImages(const std::string& path, const RecordIoOptions& options) : file_(path) {
    const auto scan = [&] { return text_of(file_.scan()); };
    const std::string text = options.on_one_rank(scan);
    places_ = places_of(text);
    fingerprint_ = cat("recordio ", places_.size(), " xxh3 ", hex(xxh3(text)));
    for (const RecordPlace& place : places_) classes_ = std::max<int64_t>(classes_, place.class_number + 1);
    if (options.classes > 0 && classes_ > options.classes) {
      throw DataError(shown(path), ": has the class ", classes_ - 1, ", and the training part's go from 0 to ",
                      options.classes - 1, "; do the two belong together?");
    }
    classes_ = std::max(classes_, options.classes);
  }

  int64_t size() const override { return std::ssize(places_); }
  Encoded read(int64_t index, std::vector<uint8_t>& memory) const override { return {file_.image(at(index), memory)}; }
  int64_t class_of(int64_t index) const override { return at(index).class_number; }
  std::string name_of(int64_t index) const override {
    return cat(shown(file_.path()), ": record ", index, " at byte ", at(index).offset);
  }

  std::string short_name_of(int64_t index) const override {
    return cat(std::filesystem::path(file_.path()).filename().string(), ": record ", index);
  }

  std::vector<std::string> class_names() const override {
    std::vector<std::string> names;
    for (int64_t i = 0; i < classes_; ++i) names.push_back(cat(i));
    return names;
  }
  bool has_class_names() const override { return false; }

  std::string fingerprint() const override { return fingerprint_; }
  std::string text() const override {
    return cat(size(), " images of ", classes_, " classes in ", shown(file_.path()));
  }
  Listing listing() const override {
    return {{std::filesystem::path(file_.path()).filename().string(), file_.bytes()}};
  }
  void will_need(std::span<const int64_t> indices) const override {
    for (const int64_t index : indices) file_.will_need(at(index));
  }

 private:
  const RecordPlace& at(int64_t index) const {
    data::check_index(index, size());
    return places_[static_cast<size_t>(index)];
  }

  RecordIo file_;
  std::vector<RecordPlace> places_;
  int64_t classes_ = 0;
  std::string fingerprint_;
};

}  // namespace

std::shared_ptr<const ImageSource> record_io_images(const std::string& path, const RecordIoOptions& options) {
  return std::make_shared<RecordIoImages>(path, options);
}

}  // namespace lockstep::datasets
