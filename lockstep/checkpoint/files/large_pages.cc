#include "lockstep/checkpoint/files/large_pages.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <utility>

#include "lockstep/base/error.h"

namespace lockstep::checkpoint {
namespace {

constexpr uintptr_t kLargePage = 2u << 20;

char* rounded_up(char* at) { return at + (kLargePage - reinterpret_cast<uintptr_t>(at) % kLargePage) % kLargePage; }

}  // namespace

bool has_large_pages() {
  static const bool has = [] {
    std::ifstream enabled("/sys/kernel/mm/transparent_hugepage/enabled");
    std::string words;
    std::getline(enabled, words);
    return words.find('[') != std::string::npos && words.find("[never]") == std::string::npos &&
           prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 0;
  }();
  return has;
}

void ask_for_large_pages(char* memory, uint64_t bytes) {
  char* const begin = rounded_up(memory);
  if (begin > memory + bytes) return;
  const uint64_t whole = static_cast<uint64_t>(memory + bytes - begin) / kLargePage * kLargePage;
  if (whole > 0) madvise(begin, whole, MADV_HUGEPAGE);
}

LargePages::LargePages(size_t bytes) {
  const size_t room = bytes + kLargePage;
  void* const memory = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw IoError("no memory for ", human_bytes(bytes), ": ", errno_text(errno));
  mapped_ = {static_cast<char*>(memory), room};
  bytes_ = {rounded_up(mapped_.data()), bytes};
  ask_for_large_pages(bytes_.data(), bytes_.size());
}

LargePages::~LargePages() {
  if (!mapped_.empty()) munmap(mapped_.data(), mapped_.size());
}

LargePages::LargePages(LargePages&& other) noexcept
    : mapped_(std::exchange(other.mapped_, {})), bytes_(std::exchange(other.bytes_, {})) {}

}  // namespace lockstep::checkpoint
