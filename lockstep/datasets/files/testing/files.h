// For tests: a directory of their own, gzip data, and the line of an error.
#pragma once

#include <gtest/gtest.h>
#include <libdeflate.h>

#include <fstream>
#include <string>

#include "lockstep/base/error.h"
#include "lockstep/base/testing/temp_dir.h"

namespace lockstep::datasets::testing {

class TempDir : public testing_support::TempDir {
 public:
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(*this / name, std::ios::binary) << content;
    return *this / name;
  }
};

inline std::string gzip(const std::string& bytes, int level = 6) {
  libdeflate_compressor* compressor = libdeflate_alloc_compressor(level);
  std::string packed(libdeflate_gzip_compress_bound(compressor, bytes.size()), '\0');
  packed.resize(libdeflate_gzip_compress(compressor, bytes.data(), bytes.size(), packed.data(), packed.size()));
  libdeflate_free_compressor(compressor);
  return packed;
}

// The line of the DataError that `act` throws; a failed test, and "", if it throws none.
template <typename Act>
std::string data_error(const Act& act) {
  try {
    act();
  } catch (const DataError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no DataError";
  return "";
}

}  // namespace lockstep::datasets::testing
