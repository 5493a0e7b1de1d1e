#include "lockstep/checkpoint/slots/slots.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/base/clock.h"
#include "lockstep/base/env.h"
#include "lockstep/base/error.h"

namespace lockstep::checkpoint {
namespace {

constexpr size_t kPage = 4096, kHeaderBytes = 4 * kPage;
static_assert(sizeof(SnapshotHeader) <= kHeaderBytes);
constexpr std::string_view kName = "lockstep-snapshots";

bool is_ours(int memory) {
  std::array<char, 64> target{};
  const ssize_t length = readlink(cat("/proc/self/fd/", memory).c_str(), target.data(), target.size());
  const std::string_view name(target.data(), static_cast<size_t>(std::max<ssize_t>(length, 0)));
  return name.starts_with(cat("/memfd:", kName));
}

}  // namespace

Descriptor Slots::create(int ranks) {
  const size_t machine = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  Descriptor memory = create_memfd(std::string(kName), kHeaderBytes + kCount * (machine / kPage * kPage));
  const Mapping mapping(memory.get(), kHeaderBytes);
  auto* header = mapping.at<SnapshotHeader>(0);
  header->ranks.store(static_cast<uint32_t>(ranks));
  std::random_device random;
  header->id.store(uint64_t{random()} << 32 | random());
  header->magic.store(SnapshotHeader::kMagic);
  return memory;
}

// The variable may be stale, inherited by a program further down, so only the launcher's own memory counts.
std::shared_ptr<Slots> Slots::inherited() {
  const auto memory = env_int(kVariable, 0, INT_MAX);
  if (!memory || !is_ours(static_cast<int>(*memory))) return nullptr;
  fcntl(static_cast<int>(*memory), F_SETFD, FD_CLOEXEC);  // what this rank starts is not to inherit it
  return std::make_shared<Slots>(static_cast<int>(*memory));
}

bool Slots::have_room(uint64_t file_bytes, const Logger& log, uint64_t resident, uint64_t besides) {
  const uint64_t both = kCount * file_bytes;
  if (available_memory() + resident > both + both / 4 + besides) return true;
  log.warning("checkpoints are waited for: two of them, ", human_bytes(both + besides),
              besides > 0 ? " with what is gathered" : "",
              ", don't fit into the memory that is left; no snapshots are kept");
  return false;
}

uint64_t Slots::resident(uint64_t file_bytes) const {
  uint64_t pages = 0;
  for (int i = 0; i < kCount; ++i) {
    const std::span<char> own = room(i).first(std::min<size_t>(room(i).size(), file_bytes));
    std::vector<unsigned char> there((own.size() + kPage - 1) / kPage);
    if (mincore(own.data(), own.size(), there.data()) != 0) continue;
    pages += static_cast<uint64_t>(std::ranges::count_if(there, [](unsigned char page) { return (page & 1) != 0; }));
  }
  return pages * kPage;
}

Slots::Slots(int memory) : mapping_(memory, 0, Mapping::OnFork::kLeaveOut) {
  if (mapping_.size() > kHeaderBytes && header().magic.load() == SnapshotHeader::kMagic) return;
  throw BugError("the memory of snapshots is not of this version of lockstep: are its two programs of one build?");
}

std::span<char> Slots::room(int slot) const {
  const size_t bytes = (mapping_.size() - kHeaderBytes) / kCount;
  return {mapping_.at<char>(kHeaderBytes + static_cast<size_t>(slot) * bytes), bytes};
}

// A mark that an earlier rank left in `done` would let a slot be committed before its successor has copied.
void Slots::begin_anew(int ranks) const {
  for (int i = 0; i < kCount; ++i) {
    slot(i).committed.store(0);
    for (auto& mark : slot(i).done) mark.store(0);
    slot(i).pinned.store(0);
  }
  header().saved_best.store(0);
  header().lost_best.store(0);
  header().ranks.store(static_cast<uint32_t>(ranks));
}

void Slots::tell_folder(const std::string& folder, int keep_last) const {
  struct stat run {};
  if (stat(std::filesystem::path(folder).parent_path().c_str(), &run) != 0) {
    throw IoError(folder, ": can't be found: ", errno_text(errno));
  }
  header().device.store(run.st_dev);
  header().inode.store(run.st_ino);
  header().folder.set(folder);
  header().keep_last.store(keep_last);  // who sees it sees the folder
}

std::optional<int> Slots::choose() const {
  std::optional<int> chosen;
  const auto best = newest();
  for (int i = 0; i < kCount; ++i) {
    if (slot(i).pinned.load() != 0) continue;
    if (!chosen || (best && best->slot == *chosen)) chosen = i;
  }
  return chosen;
}

void Slots::begin(int index, int rank, uint64_t bytes, uint64_t layout_hash) const {
  SnapshotHeader::Slot& own = slot(index);
  own.committed.store(0);  // sequentially consistent: before any byte of the image
  own.done[static_cast<size_t>(rank)].store(0);
  own.sums[static_cast<size_t>(rank)].store(0);
  if (rank == 0) {
    own.file_bytes.store(bytes);
    own.layout_hash.store(layout_hash);
  }
}

void Slots::leave_sums(int index, int rank, uint64_t file_bytes, size_t most, std::span<const ByteSum> sums) const {
  SnapshotHeader::Slot& own = slot(index);
  const uint64_t at = (file_bytes + kPage - 1) / kPage * kPage;
  const uint64_t first = at + static_cast<uint64_t>(rank) * most * sizeof(ByteSum);
  if (sums.size() > most || first + sums.size_bytes() > room(index).size()) return;  // the keeper does without
  std::memcpy(room(index).data() + first, sums.data(), sums.size_bytes());
  own.sums_at.store(at);
  own.sums_most.store(most);
  own.sums[static_cast<size_t>(rank)].store(static_cast<uint32_t>(sums.size()));
}

std::vector<ByteSum> Slots::sums_of(const Whole& image) const {
  const SnapshotHeader::Slot& own = slot(image.slot);
  const uint64_t stride = own.sums_most.load() * sizeof(ByteSum);
  std::vector<ByteSum> all;
  for (uint32_t rank = 0; rank < header().ranks.load(); ++rank) {
    const size_t count = own.sums[rank].load();
    const size_t before = all.size();
    if (count == 0) continue;
    all.resize(before + count);
    std::memcpy(all.data() + before, room(image.slot).data() + own.sums_at.load() + rank * stride,
                count * sizeof(ByteSum));
  }
  return all;
}

void Slots::end(int index, int rank, int64_t step) const {
  SnapshotHeader::Slot& own = slot(index);
  const uint64_t mark = static_cast<uint64_t>(step) + 1;
  own.done[static_cast<size_t>(rank)].store(mark);
  for (uint32_t each = 0; each < header().ranks.load(); ++each) {
    if (own.done[each].load() != mark) return;
  }
  own.committed.store(mark);
  ring();
}

void Slots::pin(int index, Purpose purpose) const {
  slot(index).pinned.store(static_cast<uint32_t>(purpose));
  ring();
}

void Slots::unpin(int index) const {
  slot(index).pinned.store(0);
  ring();
}

std::optional<Slots::Whole> Slots::whole(int index) const {
  const SnapshotHeader::Slot& own = slot(index);
  const uint64_t mark = own.committed.load();
  const uint64_t bytes = own.file_bytes.load();
  if (mark == 0 || bytes > room(index).size()) return std::nullopt;
  return Whole{index, static_cast<int64_t>(mark - 1), bytes, static_cast<Purpose>(own.pinned.load())};
}

std::optional<Slots::Whole> Slots::newest() const {
  std::optional<Whole> newest;
  for (int i = 0; i < kCount; ++i) {
    const auto each = whole(i);
    if (each && (!newest || each->step > newest->step)) newest = each;
  }
  return newest;
}

std::optional<Slots::Whole> Slots::asked() const {
  std::optional<Whole> oldest;
  for (int i = 0; i < kCount; ++i) {
    const auto each = whole(i);
    if (each && each->purpose != Purpose::kSnapshot && (!oldest || each->step < oldest->step)) oldest = each;
  }
  return oldest;
}

bool Slots::wait_until(const std::function<bool()>& condition, const std::function<void()>& on_progress,
                       double patience) const {
  constexpr int64_t kNapNs = 20'000'000;
  uint64_t last = 0;
  Stopwatch since_progress;
  while (!condition()) {
    if (since_progress.seconds() > patience) return false;
    const uint32_t seen = header().bell.load();
    const uint64_t progress = header().progress.load();
    if (progress != std::exchange(last, progress)) on_progress(), since_progress.restart();
    if (!condition()) sleep(seen, kNapNs);
  }
  return true;
}

void Slots::ring() const {
  header().bell.fetch_add(1);
  syscall(SYS_futex, &header().bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Slots::sleep(uint32_t seen, int64_t ns) const {
  const timespec timeout{ns / 1'000'000'000, ns % 1'000'000'000};
  syscall(SYS_futex, &header().bell, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

}  // namespace lockstep::checkpoint
