// Images and their masks, in whichever of the forms that people have.
#pragma once

#include "lockstep/data/dataset.h"
#include "lockstep/datasets/open_options.h"

namespace lockstep::datasets {

// Opens what lies at options.path: a folder with imgs/, images/ or train/, and masks/, train_masks/ or labels/
// (Carvana's layout, and that of Pytorch-UNet); or one with train/ and mostly val/ of such folders; or packed data of
// either. Images come out in one channel if the first part's all are grey, else in three, from 0 to 1, the shorter side
// options.size or options.scale times the first image's, the longer one in that image's proportions, both rounded to
// 16; images of other proportions lose their edges. Classes are the masks' values, ascending. A collective where
// options.on_one_rank is. Throws DataError for images or masks without partner, and for all that find_pairs and
// scan_masks refuse.
data::Splits open_pairs(const OpenOptions& options);

}  // namespace lockstep::datasets
