// What recipes of images ask of `datasets`.
#pragma once

#include "lockstep/datasets/open_options.h"
#include "lockstep/train/recipe.h"

namespace lockstep::recipes {

// How the files of a run's request are opened, as images of `size`.
inline datasets::OpenOptions file_request(const train::DataRequest& request, const datasets::ImageOptions& images,
                                          int size) {
  return {.path = request.path,
          .images = images,
          .size = size,
          .channels_last = request.channels_last,
          .dtype = request.dtype,
          .as_bytes = request.as_bytes,
          .encoded = request.encoded,
          .passes_over_bad = request.passes_over_bad,
          .threads = request.threads,
          .on_one_rank = request.on_one_rank,
          .findings = request.findings};
}

// How files to predict for are opened, as images of `size`.
inline datasets::OpenOptions input_request(const train::InputRequest& request, const datasets::ImageOptions& images,
                                           int size) {
  return {.path = {}, .images = images, .size = size, .channels_last = request.channels_last};
}

}  // namespace lockstep::recipes
