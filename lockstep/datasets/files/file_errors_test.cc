#include "lockstep/datasets/files/file_errors.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "lockstep/base/error.h"

namespace lockstep::datasets {
namespace {

TEST(FileErrors, TellTheMachinesFaultFromTheFiles) {
  for (const int error : {EIO, ESTALE, ENXIO, ENOMEM, EMFILE, ENOTCONN}) {
    EXPECT_THROW(throw_file_error("cats/1.jpg", "can't be read", error), IoError) << error;
  }
  for (const int error : {ENOENT, EACCES, ELOOP, ENOTDIR, ENAMETOOLONG, EISDIR}) {
    EXPECT_THROW(throw_file_error("cats/1.jpg", "can't be read", error), DataError) << error;
  }
}

TEST(FileErrors, NameTheFile) {
  try {
    throw_file_error("cats/1.jpg", "can't be read", EIO);
  } catch (const IoError& error) {
    EXPECT_STREQ(error.what(),
                 "cats/1.jpg: can't be read: Input/output error (errno 5); is the disk or the mount all right?");
  }
}

}  // namespace
}  // namespace lockstep::datasets
