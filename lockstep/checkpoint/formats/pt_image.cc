#include "lockstep/checkpoint/formats/pt_image.h"

#include <cstring>
#include <unordered_map>

#include "lockstep/base/error.h"
#include "lockstep/base/xxh3.h"
#include "lockstep/checkpoint/files/byte_share.h"
#include "lockstep/checkpoint/files/stream_copy.h"

namespace lockstep::checkpoint {

namespace {

// Copies a part of a tensor to its place in the image.
void copy_part(char* image, uint64_t offset, const char* from, uint64_t bytes, std::vector<ByteSum>& sums) {
  if (bytes > 0) sums.push_back({offset, bytes, stream_copy_summed(image + offset, from, bytes)});
}

}  // namespace

PtImage::PtImage(const Value& value) : plan_(value), entries_(pt_entries(value, plan_)) {
  Xxh3 hash;
  for (const PtEntry& entry : entries_) {
    const auto& placed =
        layout_.add(entry.name, entry.storage ? plan_.storages()[*entry.storage].size() : entry.text.size());
    const uint64_t place[] = {placed.content, placed.bytes};
    if (entry.storage) hash.add(std::span<const uint64_t>(place));
  }
  hash_ = hash.value();
}

std::vector<ByteSum> PtImage::copy_share(std::span<const OwnSlice> slices, int ranks, int rank, char* image) const {
  std::vector<ByteSum> sums;
  std::vector<ByteRange> together;  // in all ranks' memory
  std::vector<size_t> storage_of;
  for (size_t i = 0; i < plan_.storages().size(); ++i) {
    if (!plan_.storages()[i].has_memory()) continue;
    together.push_back({layout_.entries()[i].content, layout_.entries()[i].bytes});
    storage_of.push_back(i);
  }
  for (const SharePart& part : share_of(together, ranks, rank)) {
    const char* const from = plan_.storages()[storage_of[part.range]].bytes().data();
    copy_part(image, together[part.range].offset + part.first, from + part.first, part.bytes, sums);
  }
  copy_slices(slices, image, sums);
  if (rank != 0) return sums;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const ZipEntry& placed = layout_.entries()[i];
    const std::string header = local_header(placed);
    std::memcpy(image + placed.header, header.data(), header.size());
    std::memcpy(image + placed.content, entries_[i].text.data(), entries_[i].text.size());
  }
  return sums;
}

void PtImage::copy_slices(std::span<const OwnSlice> slices, char* image, std::vector<ByteSum>& sums) const {
  std::unordered_map<const void*, const OwnSlice*> slice_of;
  for (const OwnSlice& slice : slices) slice_of.emplace(slice.whole.storage().unsafeGetStorageImpl(), &slice);
  for (size_t i = 0; i < plan_.storages().size(); ++i) {
    const StoragePlan::Storage& storage = plan_.storages()[i];
    if (storage.has_memory()) continue;
    const auto found = slice_of.find(storage.tensor.storage().unsafeGetStorageImpl());
    if (found == slice_of.end()) throw BugError("a tensor of a checkpoint has a place, but nobody's bytes");
    const at::Tensor& own = found->second->own;
    const auto first = static_cast<uint64_t>(found->second->first) * own.element_size();
    if (first + own.nbytes() > storage.size()) throw BugError("a slice is longer than its tensor");
    copy_part(image, layout_.entries()[i].content + first, static_cast<const char*>(own.const_data_ptr()), own.nbytes(),
              sums);
  }
}

}  // namespace lockstep::checkpoint
