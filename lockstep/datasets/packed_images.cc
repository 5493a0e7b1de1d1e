#include "lockstep/datasets/packed_images.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/data/dataset.h"
#include "lockstep/datasets/packed/manifest.h"
#include "lockstep/datasets/packed/shard_reader.h"

namespace lockstep::datasets {
namespace {

class PackedImages final : public ImageSource {
 public:
  PackedImages(std::string path, const std::vector<std::string>& classes)
      : path_(std::move(path)), manifest_(read_manifest(path_)) {
    for (const ShardFile& file : manifest_.shards) open(file);
    if (size_ == 0) throw DataError(shown(path_), ": packed data without images; pack it again");
    class_names_ = shards_.front().reader.class_names();
    for (const Shard& shard : shards_) check_classes(shard.reader);
    find_first();
    if (!classes.empty() && classes != class_names_) {
      throw DataError(shown(path_), ": its ", class_names_.size(), " classes are not the ", classes.size(),
                      " of the training part; pack both from one data set");
    }
  }

  int64_t size() const override { return size_; }

  Encoded read(int64_t index, std::vector<uint8_t>& memory) const override {
    return image_of(record_at(index, memory));
  }

  bool has_masks() const override { return manifest_.kind == Packed::kMasks; }
  EncodedPair read_pair(int64_t index, PairMemory& memory) const override {
    const PackedRecord read = record_at(index, memory.image);
    return {image_of(read), {read.mask}};
  }
  Encoded read_mask(int64_t index, std::vector<uint8_t>& memory) const override {
    return {record_at(index, memory).mask};
  }
  std::vector<uint32_t> mask_values() const override { return manifest_.mask_values; }
  int64_t first() const override { return first_; }

  int64_t class_of(int64_t index) const override {
    const auto [shard, record] = place_of(index);
    return shard->reader.class_of(record);
  }

  std::string name_of(int64_t index) const override {
    const auto [shard, record] = place_of(index);
    return cat(shown(shard->reader.path()), ": record ", record, " (", shown(shard->reader.name_of(record)), ")");
  }
  std::string mask_name_of(int64_t index) const override { return name_of(index) + "'s mask"; }
  std::string short_name_of(int64_t index) const override {
    const auto [shard, record] = place_of(index);
    return shard->reader.name_of(record);
  }

  std::vector<std::string> class_names() const override { return class_names_; }
  std::string fingerprint() const override { return manifest_.fingerprint(); }

  std::string text() const override {
    const std::string what = has_masks() ? "with masks" : cat("of ", class_names_.size(), " classes");
    return cat(size_, " packed images ", what, " in ", shown(path_), " (", manifest_.packing, ")");
  }

  Listing listing() const override {
    Listing files;
    for (const ShardFile& file : manifest_.shards) files.push_back({file.file, file.bytes});
    std::sort(files.begin(), files.end(), [](const Listed& a, const Listed& b) { return a.name < b.name; });
    return files;
  }

  void will_need(std::span<const int64_t> indices) const override {
    std::map<const Shard*, std::vector<int64_t>> records;
    for (const int64_t index : indices) {
      const auto [shard, record] = place_of(index);
      records[shard].push_back(record);
    }
    for (auto& [shard, wanted] : records) {
      std::sort(wanted.begin(), wanted.end());
      shard->reader.will_need(wanted);
    }
  }

 private:
  struct Shard {
    ShardReader reader;
    int64_t first;  // the number of its first image
  };

  void open(const ShardFile& file) {
    ShardReader reader(path_ + "/" + file.file);
    check_shard(reader, file);
    const int64_t records = reader.size();
    if (records > 0) shards_.push_back({std::move(reader), size_});
    size_ += records;
  }

  PackedRecord record_at(int64_t index, std::vector<uint8_t>& memory) const {
    const auto [shard, record] = place_of(index);
    const PackedRecord read = shard->reader.read(record, memory);
    if (read.mask.empty() == has_masks()) {
      throw DataError(name_of(index), has_masks() ? ": an image without a mask" : ": an image with a mask",
                      ", against what manifest.json says; pack the data again");
    }
    return read;
  }

  static Encoded image_of(const PackedRecord& record) {
    if (record.codec != Codec::kRaw) return {record.image};
    const size_t pixels = size_t{record.width} * record.height;
    const int channels = record.image.size() == pixels ? 1 : 3;  // the decoder compares the bytes with that
    return {record.image, image::RawLayout{.size = {record.width, record.height}, .channels = channels}};
  }

  void find_first() {
    uint64_t least = UINT64_MAX;
    for (const Shard& shard : shards_) {
      for (int64_t record = 0; record < shard.reader.size(); ++record) {
        if (shard.reader.source_of(record) >= least) continue;
        least = shard.reader.source_of(record);
        first_ = shard.first + record;
      }
    }
  }

  void check_classes(const ShardReader& shard) const {
    if (shard.class_names() != class_names_) {
      throw DataError(shown(shard.path()), ": its classes are not those of ", shown(shards_.front().reader.path()),
                      "; they don't belong together: pack the data again");
    }
    for (int64_t record = 0; record < shard.size() && !has_masks(); ++record) {
      const int32_t number = shard.class_of(record);
      if (number >= 0 && number < std::ssize(class_names_)) continue;
      throw DataError(shown(shard.path()), ": record ", record, " has the class ", number, ", and there are ",
                      class_names_.size(), "; pack the data again, from class folders");
    }
  }

  std::pair<const Shard*, int64_t> place_of(int64_t index) const {
    data::check_index(index, size_);
    const auto after = std::upper_bound(shards_.begin(), shards_.end(), index,
                                        [](int64_t wanted, const Shard& shard) { return wanted < shard.first; });
    return {&*(after - 1), index - (after - 1)->first};
  }

  std::string path_;
  Manifest manifest_;
  std::vector<Shard> shards_;  // none of them empty
  int64_t size_ = 0, first_ = 0;
  std::vector<std::string> class_names_;
};

}  // namespace

std::shared_ptr<const ImageSource> packed_images(const std::string& path, const std::vector<std::string>& classes) {
  return std::make_shared<PackedImages>(path, classes);
}

}  // namespace lockstep::datasets
