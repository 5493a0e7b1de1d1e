// MNIST as JSON, packed with gzip or not.
#include "lockstep/datasets/digits/mnist_json.h"

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
    const datasets::MnistJson json = datasets::read_mnist_json(file.path());
    for (const auto* part : {&json.train, &json.validation, &json.test}) {
      fuzz::check(part->pixels.size() == 784 * part->labels.size(), "as many images as labels");
      for (const float pixel : part->pixels) fuzz::check(pixel >= 0 && pixel <= 1, "a pixel beyond 0 to 1");
      for (const uint8_t label : part->labels) fuzz::check(label <= 9, "a label beyond the digits");
    }
  });
  return 0;
}
