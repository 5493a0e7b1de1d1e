#include "lockstep/datasets/digits/idx.h"

#include <iomanip>
#include <sstream>

#include "lockstep/base/error.h"
#include "lockstep/base/shown.h"
#include "lockstep/datasets/files/file_bytes.h"
#include "lockstep/datasets/files/gzip.h"

namespace lockstep::datasets {
namespace {

constexpr uint64_t kMostBytes = 2ULL << 30;  // EMNIST, the largest idx file in use, has half a GiB
constexpr size_t kHeadBytes = 16;            // the longer of the two headers

// The kind of file that a caller expects, in the words of messages.
struct Kind {
  uint32_t magic;
  size_t dims;
  const char* name;
  size_t header_bytes() const { return 4 + 4 * dims; }
};
constexpr Kind kImages{2051, 3, "images"};
constexpr Kind kLabels{2049, 1, "labels"};

struct Header {
  std::vector<uint32_t> dims;
  uint64_t total_bytes = 0;  // of the whole unpacked file

  std::string promise(const Kind& kind) const {
    return dims.size() == 3 ? cat(dims[0], " images of ", dims[1], "×", dims[2]) : cat(dims[0], " ", kind.name);
  }
};

uint32_t big_endian(std::span<const uint8_t> bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

[[noreturn]] void refuse_magic(std::span<const uint8_t> head, const Kind& kind, const std::string& path) {
  const uint32_t magic = big_endian(head);
  for (const Kind& other : {kImages, kLabels}) {
    if (magic == other.magic) {
      throw DataError(shown(path), ": byte 0: holds ", other.name, " where ", kind.name, " are expected (magic ", magic,
                      ", not ", kind.magic, "); were two files swapped?");
    }
  }
  std::ostringstream bytes;
  for (int i = 0; i < 4; ++i) bytes << (i ? " " : "") << std::hex << std::setfill('0') << std::setw(2) << +head[i];
  throw DataError(shown(path), ": byte 0: not an idx file of ", kind.name, ": it begins with the bytes ", bytes.str(),
                  ", not ", "00 00 08 0", kind.dims, "; is it the right file?");
}

Header parse_header(std::span<const uint8_t> head, const Kind& kind, const std::string& path) {
  if (head.size() < 4) {
    throw DataError(shown(path), ": cut short: ", head.size(),
                    " bytes, fewer than the header of an idx file; get it again");
  }
  if (big_endian(head) != kind.magic) refuse_magic(head, kind, path);
  if (head.size() < kind.header_bytes()) {
    throw DataError(shown(path), ": cut short: ", head.size(), " bytes where the header alone has ",
                    kind.header_bytes(), "; get it again");
  }
  Header header;
  uint64_t payload = 1;
  bool overflow = false;
  for (size_t i = 0; i < kind.dims; ++i) {
    header.dims.push_back(big_endian(head.subspan(4 + 4 * i)));
    overflow = __builtin_mul_overflow(payload, uint64_t{header.dims[i]}, &payload) || overflow;
    if (i > 0 && header.dims[i] == 0)
      throw DataError(shown(path), ": byte ", 4 + 4 * i, ": images without a pixel (size 0)");
  }
  if (overflow || payload > kMostBytes) {
    throw DataError(shown(path), ": byte 4: the header promises ", header.promise(kind), ", more than the ",
                    human_bytes(kMostBytes), " that an idx file may have; the file is damaged or not what it seems");
  }
  header.total_bytes = kind.header_bytes() + payload;
  return header;
}

void check_length(uint64_t found, const Header& header, const Kind& kind, const std::string& path) {
  if (found < header.total_bytes) {
    throw DataError(shown(path), ": cut short: ", header.promise(kind), " take ", header.total_bytes, " bytes, ", found,
                    " are there; get it again");
  }
  if (found > header.total_bytes) {
    throw DataError(shown(path), ": byte ", header.total_bytes, ": data goes on after the ", header.promise(kind),
                    " that the header promises", "; the file is damaged or not what it seems");
  }
}

struct Content {
  Header header;
  Bytes bytes;
};

Content read_packed(const DataFile& file, const Kind& kind) {
  const std::string& path = file.path();
  const Bytes packed = file.all(kMostBytes);
  Header header = parse_header(gunzip_head(packed.span(), kHeadBytes, path).span(), kind, path);
  if (header.total_bytes > gunzip_bound(packed.size())) {
    throw DataError(shown(path), ": cut short: ", header.promise(kind), " take ", header.total_bytes, " bytes, which ",
                    packed.size(), " bytes of gzip data can't hold; get it again");
  }
  Bytes bytes = gunzip(packed.span(), header.total_bytes, header.total_bytes, path);
  header = parse_header(bytes.span(), kind, path);
  return {std::move(header), std::move(bytes)};
}

Content read_idx(const DataFile& file, const Kind& kind) {
  const std::string& path = file.path();
  const Bytes head = file.head(kHeadBytes);
  Content content;
  if (is_gzip(head.span())) {
    content = read_packed(file, kind);
    check_length(content.bytes.size(), content.header, kind, path);
  } else {
    content.header = parse_header(head.span(), kind, path);
    check_length(file.size(), content.header, kind, path);
    content.bytes = file.all(kMostBytes);
  }
  return content;
}

std::vector<uint8_t> payload(const Content& content, const Kind& kind) {
  const auto bytes = content.bytes.span().subspan(kind.header_bytes());
  return {bytes.begin(), bytes.end()};
}

}  // namespace

IdxImages read_idx_images(const std::string& path) {
  const Content content = read_idx(DataFile(path), kImages);
  const auto& dims = content.header.dims;
  if (dims[0] == 0) throw DataError(shown(path), ": byte 4: holds no images (count 0); get it again");
  return {.count = dims[0], .rows = dims[1], .columns = dims[2], .pixels = payload(content, kImages)};
}

std::vector<uint8_t> read_idx_labels(const std::string& path) {
  return payload(read_idx(DataFile(path), kLabels), kLabels);
}

}  // namespace lockstep::datasets
