// Libjpeg's errors, which leave its functions by a long jump.
#pragma once

// jpeglib.h wants <cstdio> before it.
// clang-format off
#include <csetjmp>
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>
// clang-format on

namespace lockstep::image {

// What libjpeg calls on errors and warnings. Warnings that stand for wrong pixels count as errors.
struct JpegErrors : jpeg_error_mgr {
  JpegErrors();
  JpegErrors(const JpegErrors&) = delete;

  // Runs work(), which calls libjpeg. False if that failed: `text` says why. What stands on work's stack is left
  // without destructors.
  template <typename Work>
  bool run(const Work& work) {
    if (setjmp(jump) != 0) return false;
    work();
    return true;
  }

  // Leaves run(). For callbacks of libjpeg.
  [[noreturn]] void fail(const char* why);

  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX] = "";
};

}  // namespace lockstep::image
