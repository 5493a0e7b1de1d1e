#include "link.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <exception>
#include <random>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/error.h"

namespace lockstep::e2e {
namespace {

// A device belongs to the namespace of the thread that makes it.
Descriptor make_device(const std::string& space, const std::string& device) {
  Descriptor tun;
  std::exception_ptr failure;
  std::thread([&] {
    try {
      const std::string path = "/run/netns/" + space;
      const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (!file || setns(file.get(), CLONE_NEWNET) != 0) throw IoError(path, ": ", errno_text(errno));
      tun = Descriptor(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
      ifreq request{};
      request.ifr_flags = IFF_TUN | IFF_NO_PI;
      std::copy_n(device.begin(), std::min<size_t>(device.size(), IFNAMSIZ - 1), request.ifr_name);
      if (!tun || ioctl(tun.get(), TUNSETIFF, &request) != 0) throw IoError("/dev/net/tun: ", errno_text(errno));
    } catch (...) {
      failure = std::current_exception();
    }
  }).join();
  if (failure) std::rethrow_exception(failure);
  return tun;
}

struct Packet {
  int64_t due_ns;
  int to;
  std::vector<char> bytes;
};

}  // namespace

Link::Link(const std::string& first, const std::string& second, const std::string& device, Options options)
    : options_(options), ends_{make_device(first, device), make_device(second, device)} {
  thread_ = std::thread([this] { carry(); });
}

Link::~Link() {
  ending_ = true;
  thread_.join();
}

void Link::carry() {
  std::deque<Packet> queue;  // in the order of their times: every packet has the same delay
  std::minstd_rand random(1);
  std::uniform_real_distribution<double> chance(0, 1);
  std::array<char, 1 << 16> buffer{};
  while (!ending_) {
    pollfd ends[2] = {{ends_[0].get(), POLLIN, 0}, {ends_[1].get(), POLLIN, 0}};
    poll(ends, 2, queue.empty() ? 20 : 1);
    for (const int end : {0, 1}) {
      for (ssize_t n; (n = read(ends_[end].get(), buffer.data(), buffer.size())) > 0;) {
        if (cut_ || chance(random) < options_.loss) continue;
        const int64_t due = monotonic_ns() + std::chrono::nanoseconds(options_.delay).count();
        queue.push_back({due, 1 - end, {buffer.data(), buffer.data() + n}});
      }
    }
    for (; !queue.empty() && queue.front().due_ns <= monotonic_ns(); queue.pop_front()) {
      const Packet& packet = queue.front();
      if (write(ends_[packet.to].get(), packet.bytes.data(), packet.bytes.size()) < 0) continue;  // lost, as it may be
    }
  }
}

}  // namespace lockstep::e2e
