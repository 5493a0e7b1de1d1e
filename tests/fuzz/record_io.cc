// RecordIO files of images.
#include "lockstep/datasets/packed/record_io.h"

#include "fuzz.h"

using namespace lockstep;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static fuzz::FileInMemory file;
  file.hold({data, size});
  fuzz::reads(file.path(), [&] {
    const datasets::RecordIo records(file.path());
    std::vector<uint8_t> memory;
    uint64_t end = 0;
    for (const datasets::RecordPlace& place : records.scan()) {
      fuzz::check(place.offset == end && place.class_number >= 0, "records that follow each other");
      end = place.offset + place.bytes;
      fuzz::check(records.image(place, memory).size() < place.bytes, "an image larger than its record");
    }
    fuzz::check(end == size, "a part of the file without a record");
  });
  return 0;
}
