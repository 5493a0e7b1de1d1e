#include "lockstep/image/jpeg_errors.h"

#include <jerror.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace lockstep::image {
namespace {

// Others, as bytes between segments or a profile out of order, are common in sound files.
constexpr std::array kWrongPixels = {JWRN_HIT_MARKER,     JWRN_HUFF_BAD_CODE, JWRN_JPEG_EOF,
                                     JWRN_ARITH_BAD_CODE, JWRN_MUST_RESYNC,   JWRN_BOGUS_PROGRESSION};

// Whether pixels are wrong after the warning. Bytes that are left before a restart marker are those of pixels.
bool is_damage(const jpeg_error_mgr& errors) {
  constexpr int kFirstRestart = 0xd0, kLastRestart = 0xd7;
  const int code = errors.msg_code, marker = errors.msg_parm.i[1];
  if (code == JWRN_EXTRANEOUS_DATA) return marker >= kFirstRestart && marker <= kLastRestart;
  return std::any_of(kWrongPixels.begin(), kWrongPixels.end(), [&](auto warning) { return warning == code; });
}

JpegErrors& errors_of(j_common_ptr state) { return *static_cast<JpegErrors*>(state->err); }

void stop(j_common_ptr state) {
  JpegErrors& errors = errors_of(state);
  errors.format_message(state, errors.text);
  std::longjmp(errors.jump, 1);
}

void emit(j_common_ptr state, int level) {
  if (level >= 0) return;  // a trace
  if (is_damage(*state->err)) stop(state);
}

void say_nothing(j_common_ptr) {}

}  // namespace

JpegErrors::JpegErrors() : jpeg_error_mgr{} {
  jpeg_std_error(this);
  error_exit = stop;
  emit_message = emit;
  output_message = say_nothing;
}

void JpegErrors::fail(const char* why) {
  std::strncpy(text, why, sizeof(text) - 1);
  std::longjmp(jump, 1);
}

}  // namespace lockstep::image
