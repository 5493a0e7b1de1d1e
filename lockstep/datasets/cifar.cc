#include "lockstep/datasets/cifar.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/data/dataset.h"
#include "lockstep/datasets/files/file_bytes.h"

namespace lockstep::datasets {
namespace {

// A record is the class (CIFAR-100: the coarse one, then the fine one), and the planes of red, green and blue.
struct Form {
  const char* name;
  size_t label_bytes;  // the last one is the class
  size_t classes;
  std::vector<std::string> train, test;
  const char* names;
  size_t record() const { return label_bytes + kPixelBytes; }
  static constexpr size_t kPixelBytes = 3 * 32 * 32;
};

Form form_of(Cifar kind) {
  if (kind == Cifar::k100) return {"CIFAR-100", 2, 100, {"train.bin"}, {"test.bin"}, "fine_label_names.txt"};
  std::vector<std::string> batches;
  for (int i = 1; i <= 5; ++i) batches.push_back(cat("data_batch_", i, ".bin"));
  return {"CIFAR-10", 1, 10, std::move(batches), {"test_batch.bin"}, "batches.meta.txt"};
}

constexpr uint64_t kMostBytes = uint64_t{1} << 30;

class CifarImages final : public ImageSource {
 public:
  CifarImages(std::string path, Cifar kind, CifarPart part) : path_(std::move(path)), form_(form_of(kind)) {
    std::string hashes;
    for (const std::string& name : part == CifarPart::kTrain ? form_.train : form_.test) {
      hashes += hex(take(path_ + "/" + name));
    }
    fingerprint_ = cat(form_.name, " ", size(), " xxh3 ", hex(xxh3(hashes)));
    read_class_names();
  }

  int64_t size() const override { return std::ssize(labels_); }

  Encoded read(int64_t index, std::vector<uint8_t>& memory) const override {
    const auto [file, record] = place_of(index);
    const auto bytes = file->file.part(record * form_.record() + form_.label_bytes, Form::kPixelBytes, memory);
    return {bytes, image::RawLayout{.size = kCifarSize, .channels = 3, .planes = true}};
  }

  int64_t class_of(int64_t index) const override {
    data::check_index(index, size());
    return labels_[static_cast<size_t>(index)];
  }

  std::string name_of(int64_t index) const override {
    const auto [file, record] = place_of(index);
    return cat(shown(file->file.path()), ": image ", record);
  }

  std::string short_name_of(int64_t index) const override {
    const auto [file, record] = place_of(index);
    return cat(file->file.path().substr(path_.size() + 1), ": image ", record);
  }

  std::vector<std::string> class_names() const override { return class_names_; }
  bool has_class_names() const override { return names_are_there_; }
  std::string fingerprint() const override { return fingerprint_; }
  std::string text() const override { return cat(form_.name, ", ", size(), " images in ", shown(path_)); }

  Listing listing() const override {
    Listing files;
    for (const File& each : files_) files.push_back({each.file.path().substr(path_.size() + 1), each.file.size()});
    return files;
  }

 private:
  struct File {
    DataFile file;
    size_t first;  // the number of its first image
  };

  // Adds a file's images; returns the file's hash.
  uint64_t take(const std::string& path) {
    DataFile file(path);
    const Bytes bytes = file.all(kMostBytes);
    const size_t record = form_.record();
    if (bytes.size() == 0 || bytes.size() % record != 0) {
      throw DataError(shown(path), ": ", bytes.size(), " bytes are no whole images of ", record, " bytes, as ",
                      form_.name, "'s are; get the binary version again");
    }
    files_.push_back({std::move(file), labels_.size()});
    for (size_t at = 0; at < bytes.size(); at += record) {
      const uint8_t label = bytes.span()[at + form_.label_bytes - 1];
      if (label >= form_.classes) {
        throw DataError(shown(path), ": byte ", at + form_.label_bytes - 1, ": class ", +label, ", but ", form_.name,
                        "'s go from 0 to ", form_.classes - 1, "; the file is damaged or not what it seems");
      }
      labels_.push_back(label);
    }
    return xxh3(bytes.span());
  }

  std::pair<const File*, size_t> place_of(int64_t index) const {
    data::check_index(index, size());
    const auto number = static_cast<size_t>(index);
    const auto after = std::upper_bound(files_.begin(), files_.end(), number,
                                        [](size_t wanted, const File& file) { return wanted < file.first; });
    return {&*(after - 1), number - (after - 1)->first};
  }

  void read_class_names() {
    std::ifstream names(path_ + "/" + form_.names);
    for (std::string line; std::getline(names, line) && class_names_.size() < form_.classes;) {
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (!line.empty()) class_names_.push_back(line);
    }
    names_are_there_ = class_names_.size() == form_.classes;
    while (class_names_.size() < form_.classes) class_names_.push_back(cat(class_names_.size()));
  }

  std::string path_;
  Form form_;
  std::vector<File> files_;
  std::vector<uint8_t> labels_;
  std::vector<std::string> class_names_;
  bool names_are_there_ = false;
  std::string fingerprint_;
};

}  // namespace

std::shared_ptr<const ImageSource> cifar(const std::string& path, Cifar kind, CifarPart part) {
  return std::make_shared<CifarImages>(path, kind, part);
}

image::Normalize cifar_normalize(Cifar kind) {
  if (kind == Cifar::k10) return {.mean = {0.4914f, 0.4822f, 0.4465f}, .std = {0.2470f, 0.2435f, 0.2616f}};
  return {.mean = {0.5071f, 0.4865f, 0.4409f}, .std = {0.2673f, 0.2564f, 0.2762f}};
}

}  // namespace lockstep::datasets
