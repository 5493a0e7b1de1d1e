#include "lockstep/launch/pty.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <cstdlib>
#include <utility>

namespace lockstep::launch {

bool set_columns(int descriptor, int columns) {
  const winsize size{.ws_row = 24, .ws_col = static_cast<unsigned short>(columns)};
  return ioctl(descriptor, TIOCSWINSZ, &size) == 0;
}

std::optional<Pty> open_pty(int columns) {
  Descriptor master(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!master || unlockpt(master.get()) != 0) return std::nullopt;
  Descriptor slave(ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios settings{};
  if (!slave || tcgetattr(slave.get(), &settings) != 0) return std::nullopt;
  cfmakeraw(&settings);  // no echo, no signals, no newline turned into two bytes
  if (tcsetattr(slave.get(), TCSANOW, &settings) != 0) return std::nullopt;
  set_columns(slave.get(), columns > 0 ? columns : 80);
  return Pty{std::move(master), std::move(slave)};
}

}  // namespace lockstep::launch
