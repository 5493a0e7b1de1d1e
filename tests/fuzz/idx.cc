// idx files, packed with gzip or not, as images and as labels.
#include "lockstep/datasets/digits/idx.h"

#include "fuzz.h"
#include "gzip_mutator.h"

using namespace lockstep;

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return fuzz::mutate_gzip(data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::FileInMemory file;
  file.hold({data, size});
  fuzz::reads(file.path(), [] {
    const datasets::IdxImages images = datasets::read_idx_images(file.path());
    const bool is_whole = static_cast<int64_t>(images.pixels.size()) == images.count * images.rows * images.columns;
    fuzz::check(images.count > 0 && is_whole, "images without their pixels");
  });
  fuzz::reads(file.path(), [] { datasets::read_idx_labels(file.path()); });
  return 0;
}
