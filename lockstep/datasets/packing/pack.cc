#include "lockstep/datasets/packing/pack.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "lockstep/base/env.h"
#include "lockstep/base/error.h"
#include "lockstep/base/in_order.h"
#include "lockstep/data/permutation.h"
#include "lockstep/datasets/packing/packing_folder.h"
#include "lockstep/datasets/packing/recoder.h"
#include "lockstep/datasets/packing/shard_row.h"
#include "lockstep/datasets/stored_data.h"
#include "lockstep/image/label_map.h"

namespace lockstep::datasets {
namespace {

constexpr uint32_t kNoEpoch = UINT32_MAX;  // an epoch's order that no run has

struct StopAsked {};

// Packs the parts of a data set one after the other.
class Packer {
 public:
  Packer(const PackOptions& options, const PackCallbacks& callbacks) : options_(options), callbacks_(callbacks) {}

  PackResult pack() {
    const StoredData stored = open_stored(options_.data);
    check(stored);
    PackingFolder folder(options_.out, {.overwrite = options_.overwrite, .data = places_of(stored)});
    result_.out = folder.out();
    result_.kind = stored.kind;
    for (const StoredPart& part : stored.parts) progress_.samples += part.images->size();
    for (const StoredPart& part : stored.parts) pack_part(part, folder.part(part.name));
    if (std::string warning = folder.finish(); !warning.empty()) result_.warnings.push_back(std::move(warning));
    return std::move(result_);
  }

 private:
  void check(const StoredData& stored) const {
    const bool cifar = stored.kind == Packed::kCifar10 || stored.kind == Packed::kCifar100;
    if (cifar && options_.size) throw ConfigError("--size: CIFAR's images are of one size, 32; leave it out");
    if (options_.shards && *options_.shards > stored.train().size()) {
      throw ConfigError("--shards ", *options_.shards, ": there are ", stored.train().size(), " samples in ",
                        stored.train().text(), "; say fewer");
    }
  }

  // The data's path, and their parts', which may be links to other places.
  std::vector<std::string> places_of(const StoredData& stored) const {
    std::vector<std::string> places = {options_.data};
    for (const StoredPart& part : stored.parts) {
      if (!part.name.empty()) places.push_back(options_.data + "/" + part.name);
    }
    return places;
  }

  Manifest manifest_of(const StoredPart& part) const {
    const bool shuffled = options_.shuffle;
    return {.kind = result_.kind,
            .source = part.images->fingerprint(),
            .packing = cat(packing_of(options_), shuffled ? cat(", shuffled by seed ", options_.seed) : ""),
            .class_names = part.images->class_names(),
            .mask_values = {},
            .shards = {}};
  }

  void pack_part(const StoredPart& part, const std::string& folder) {
    const ImageSource& source = *part.images;
    PackedPart packed{.name = part.name, .text = source.text(), .manifest = manifest_of(part)};
    ShardRow shards(folder, options_, source.size(), packed.manifest.class_names);
    const data::Permutation order(static_cast<uint64_t>(source.size()), static_cast<uint64_t>(options_.seed), kNoEpoch);
    const auto make_worker = [&] {
      return [&, recoder = std::make_unique<Recoder>(source, options_)](int64_t position) {
        const auto place = static_cast<uint64_t>(position);
        return (*recoder)(static_cast<int64_t>(options_.shuffle ? order(place) : place));
      };
    };
    const uint64_t before = progress_.bytes;
    in_order<PackedSample>(source.size(), options_.workers.value_or(usable_cores()), make_worker,
                           [&](int64_t position, Outcome<PackedSample> outcome) {
                             if (callbacks_.stops()) throw StopAsked();
                             if (const auto sample = good(std::move(outcome))) {
                               shards.add(position, *sample);
                               take(part, *sample, packed);
                             }
                             ++progress_.done;
                             progress_.bytes = before + shards.bytes();
                             callbacks_.on_progress(progress_);
                           });
    if (packed.samples == 0) throw DataError(source.text(), ": no image of it can be decoded");
    packed.manifest.shards = shards.finish();
    packed.manifest.mask_values.assign(mask_values_.begin(), mask_values_.end());
    mask_values_.clear();
    packed.emptied = emptied_classes(source);
    write_manifest(folder, packed.manifest);
    result_.parts.push_back(std::move(packed));
  }

  // The sample, or nothing if it is bad and may be left out.
  std::optional<PackedSample> good(Outcome<PackedSample> outcome) {
    try {
      return std::move(outcome).get();
    } catch (const DataError& error) {
      const auto left_out = std::ssize(result_.left_out);
      if (left_out < options_.skip_bad) {
        result_.left_out.emplace_back(error.what());
        return std::nullopt;
      }
      if (left_out == 0) throw DataError(error.what(), " (--skip-bad N leaves up to N such samples out)");
      throw DataError(error.what(), " (", left_out, " other samples were left out, and --skip-bad allows no more)");
    }
  }

  // The classes of which no sample was packed, though there are some.
  std::vector<std::string> emptied_classes(const ImageSource& source) {
    std::set<int64_t> lost;
    for (int64_t i = 0; i < source.size() && !result_.left_out.empty(); ++i) lost.insert(source.class_of(i));
    const auto names = source.class_names();
    std::vector<std::string> emptied;
    for (const int64_t number : lost) {
      if (number >= 0 && !classes_.contains(number)) emptied.push_back(names[static_cast<size_t>(number)]);
    }
    classes_.clear();
    return emptied;
  }

  void take(const StoredPart& part, const PackedSample& sample, PackedPart& packed) {
    ++packed.samples;
    classes_.insert(sample.head.class_number);
    packed.stored_bytes += sample.stored_bytes;
    mask_values_.insert(sample.mask_values.begin(), sample.mask_values.end());
    if (mask_values_.size() > image::kMostClasses) {
      image::throw_too_many_values(part.images->mask_name_of(sample.source));
    }
  }

  const PackOptions& options_;
  const PackCallbacks& callbacks_;
  PackProgress progress_;
  PackResult result_;
  std::set<uint32_t> mask_values_;  // of the part, as the classes
  std::set<int64_t> classes_;
};

}  // namespace

std::optional<PackResult> pack(const PackOptions& options, const PackCallbacks& callbacks) {
  options.check();
  try {
    return Packer(options, callbacks).pack();
  } catch (const StopAsked&) {
    return std::nullopt;
  }
}

}  // namespace lockstep::datasets
