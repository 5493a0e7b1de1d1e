// A .pt file as an image in memory, which several processes fill together: each copies its share of the tensors' bytes.
// The image has the very bytes of write_pt() but for the checksums; complete_archive() (zip_layout.h) adds these and
// returns the rest of the file.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/checkpoint/files/byte_sums.h"
#include "lockstep/checkpoint/files/zip_layout.h"
#include "lockstep/checkpoint/formats/pt_entries.h"
#include "lockstep/checkpoint/formats/storage_plan.h"
#include "lockstep/checkpoint/formats/value.h"

namespace lockstep::checkpoint {

// The part of a tensor that this process has, where others have the rest: `own`, a row, is what lies in the memory of
// `whole` from element `first` on. `whole`, of the device meta, stands in the tree.
struct OwnSlice {
  at::Tensor whole;
  at::Tensor own;
  int64_t first = 0;
};

class PtImage {
 public:
  // Lays out the file of a tree, which outlives this unchanged. Throws as write_pt().
  explicit PtImage(const Value& value);

  uint64_t bytes() const { return layout_.end(); }
  // The bytes of the whole file, with the directory.
  uint64_t file_bytes() const { return bytes() + layout_.directory().size(); }
  // A hash of the tensors' places: equal for processes that fill one image.
  uint64_t layout_hash() const { return hash_; }

  // Copies rank `rank`'s share of the bytes into the image, past the caches: its own slices, and of the tensors that
  // all `ranks` have an equal part. Rank 0 writes headers and texts besides. Returns the checksums of what it has
  // copied of tensors, at most most_sums(). Throws BugError if the tree has a tensor of the device meta of which there
  // is no slice, or one on a GPU.
  std::vector<ByteSum> copy_share(std::span<const OwnSlice> slices, int ranks, int rank, char* image) const;
  size_t most_sums() const { return plan_.storages().size(); }

 private:
  void copy_slices(std::span<const OwnSlice> slices, char* image, std::vector<ByteSum>& sums) const;

  StoragePlan plan_;
  std::vector<PtEntry> entries_;
  ZipLayout layout_;
  uint64_t hash_ = 0;
};

}  // namespace lockstep::checkpoint
