// GIFs, as images and as masks.
#include "images.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static lockstep::fuzz::ImageFuzzer fuzzer(lockstep::image::Format::kGif);
  return fuzzer.run({data, size});
}
