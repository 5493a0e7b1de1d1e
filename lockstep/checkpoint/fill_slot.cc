#include "lockstep/checkpoint/fill_slot.h"

namespace lockstep::checkpoint {

void fill_slot(const Slots& slots, int slot, const PtImage& image, std::span<const OwnSlice> slices, int ranks,
               int rank) {
  slots.begin(slot, rank, image.bytes(), image.layout_hash());
  const auto sums = image.copy_share(slices, ranks, rank, slots.room(slot).data());
  slots.leave_sums(slot, rank, image.file_bytes(), image.most_sums(), sums);
}

}  // namespace lockstep::checkpoint
