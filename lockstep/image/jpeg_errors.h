// Libjpeg's errors, which leave its functions by a long jump.
#pragma once

#include <jpeglib.h>

#include <csetjmp>
#include <cstddef>
#include <cstdio>  // jpeglib.h wants it

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
