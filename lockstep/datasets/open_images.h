// Images with classes, in whichever of the forms that people have.
#pragma once

#include "lockstep/data/dataset.h"
#include "lockstep/datasets/open_options.h"

namespace lockstep::datasets {

// Opens what lies at options.path:
//   a folder with train/ and mostly val/ (or validation/, valid/, test/), each of class folders;
//   or a folder of class folders, which has no test part, as one with train/ alone;
//   or a folder of packed data (manifest.json), or one with train/ and mostly val/ of it;
//   or MXNet's x.rec, or a folder with train.rec and mostly val.rec;
//   or a folder with CIFAR-10's or CIFAR-100's binary files.
// Images come out as options.size squared in three channels, normalised, through the pipelines that options.images
// says. A collective where options.on_one_rank is. Throws DataError that lists what was looked for if it is none of
// these.
data::Splits open_images(const OpenOptions& options);

}  // namespace lockstep::datasets
