// All bad pictures: more than 250 files, made on the spot.
#pragma once

#include "lockstep/image/testing/bad_arrays.h"
#include "lockstep/image/testing/bad_gifs.h"
#include "lockstep/image/testing/bad_jpegs.h"
#include "lockstep/image/testing/bad_pngs.h"

namespace lockstep::image::testing_support {

inline BadPictures bad_pictures() {
  BadPictures all;
  const auto add = [&](const std::string& kind, BadPictures some) {
    for (BadPicture& each : some) {
      each.name = kind + each.name;
      all.push_back(std::move(each));
    }
  };
  add("JPEG: ", bad_jpegs());
  add("PNG: ", bad_pngs());
  add("GIF: ", bad_gifs());
  add("npy: ", bad_arrays());
  add("other: ", files_of_other_kinds());
  return all;
}

}  // namespace lockstep::image::testing_support
