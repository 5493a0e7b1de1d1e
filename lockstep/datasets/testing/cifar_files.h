// For tests: CIFAR's binary files.
#pragma once

#include <string>

#include "lockstep/datasets/files/testing/files.h"

namespace lockstep::datasets::testing {

// Images `first` and so on, image i all of red i, green i + 50 and blue i + 100, its class i mod 10; with two bytes of
// classes the fine one is 70 + i.
inline std::string cifar_file(int first, int count, size_t label_bytes) {
  std::string bytes;
  for (int i = first; i < first + count; ++i) {
    if (label_bytes == 2) bytes += '\x01';
    bytes += static_cast<char>(label_bytes == 1 ? i % 10 : 70 + i);
    for (const int plane : {0, 50, 100}) bytes.append(1024, static_cast<char>(i + plane));
  }
  return bytes;
}

inline void write_cifar10(const TempDir& dir) {
  for (int i = 0; i < 5; ++i) {
    dir.write("data_batch_" + std::to_string(i + 1) + ".bin", cifar_file(4 * i, 4, 1));
  }
  dir.write("test_batch.bin", cifar_file(20, 4, 1));
  dir.write("batches.meta.txt", "airplane\nautomobile\r\n\n");
}

inline void write_cifar100(const TempDir& dir) {
  dir.write("train.bin", cifar_file(0, 20, 2));
  dir.write("test.bin", cifar_file(20, 4, 2));
}

}  // namespace lockstep::datasets::testing
