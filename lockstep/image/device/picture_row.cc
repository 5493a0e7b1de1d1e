#include "lockstep/image/device/picture_row.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "lockstep/base/error.h"
#include "lockstep/image/axis.h"

namespace lockstep::image {
namespace {

constexpr uint32_t kMark = 0x57525031;  // of a row
constexpr size_t kAlignment = 8;
constexpr size_t kMostName = 1024;  // bytes

// Numbers of 4 bytes alone, so that no byte between them is undefined.
struct Header {
  uint32_t mark = kMark;
  uint32_t name_bytes = 0, why_bytes = 0, table_bytes = 0, file_bytes = 0;
  int32_t stored_width = 0, stored_height = 0, orientation = 1;
  int32_t image_width = 0, image_height = 0;
  Rect source = {}, window = {};
  int32_t resized_width = 0, resized_height = 0;
  int32_t flip_x = 0, flip_y = 0, fill = 0;
  AxisInRow across = {}, down = {};
  int32_t first_used = 0, used = 0;
};
static_assert(std::has_unique_object_representations_v<Header>);

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

size_t bytes_of(const Header& header) {
  return aligned(sizeof(Header)) + aligned(header.name_bytes) + aligned(header.why_bytes) +
         aligned(header.table_bytes) + header.file_bytes;
}

// Writes blocks one after the other, each at an aligned place, with zeros between them.
class Writer {
 public:
  explicit Writer(std::span<uint8_t> row) : row_(row) {}
  std::span<uint8_t> block(size_t bytes) {
    const std::span<uint8_t> place = row_.subspan(at_, bytes);
    const size_t next = std::min(row_.size(), at_ + aligned(bytes));
    std::memset(row_.data() + at_ + bytes, 0, next - at_ - bytes);
    at_ = next;
    return place;
  }
  void put(const void* from, size_t bytes) {
    const auto place = block(bytes);
    if (bytes > 0) std::memcpy(place.data(), from, bytes);
  }
  void end() { std::memset(row_.data() + at_, 0, row_.size() - at_); }

 private:
  std::span<uint8_t> row_;
  size_t at_ = 0;
};

void begin_row(Writer& writer, const Header& header, std::string_view name, std::string_view why) {
  writer.put(&header, sizeof(header));
  writer.put(name.data(), name.size());
  writer.put(why.data(), why.size());
}

// The pixels of the resized image that are part of the result.
Taps wanted(int from, int length, int size) {
  const int first = std::clamp(from, 0, size);
  return {first, std::clamp(from + length, first, size)};
}

size_t table_bytes(const Axis& axis) {
  const size_t count = axis.first.size();
  return count * (2 * sizeof(int32_t) + static_cast<size_t>(axis.taps) * sizeof(int16_t));
}

AxisInRow in_row(const Axis& axis) {
  return {axis.begin, static_cast<int32_t>(axis.first.size()), static_cast<int32_t>(axis.taps)};
}

void put_tables(std::span<uint8_t> to, const Axis& across, const Axis& down) {
  uint8_t* place = to.data();
  const auto put = [&place](const auto& values, size_t count) {
    const size_t bytes = count * sizeof(values[0]);
    if (bytes > 0) std::memcpy(place, values.data(), bytes);
    place += bytes;
  };
  for (const Axis* axis : {&across, &down}) {
    put(axis->first, axis->first.size());
    put(axis->count, axis->count.size());
  }
  for (const Axis* axis : {&across, &down}) put(axis->weights, axis->first.size() * static_cast<size_t>(axis->taps));
}

Header header_of(const JpegPlan& plan, Taps across, Taps down) {
  const Geometry& g = plan.geometry;
  Header header{.stored_width = plan.stored.width,
                .stored_height = plan.stored.height,
                .orientation = plan.orientation,
                .image_width = g.image.width,
                .image_height = g.image.height,
                .source = g.source,
                .window = g.window,
                .resized_width = g.resized.width,
                .resized_height = g.resized.height,
                .flip_x = g.flip_x,
                .flip_y = g.flip_y,
                .fill = g.fill};
  if (across.first == across.last || down.first == down.last) return header;  // all of the result is filled
  header.first_used = taps_of(g.source.height, g.resized.height, down.first).first;
  header.used = taps_of(g.source.height, g.resized.height, down.last - 1).last - header.first_used;
  return header;
}

}  // namespace

int64_t row_bytes(Size result) {
  const int64_t pixels = int64_t{3} * result.width * result.height;
  const auto beside = static_cast<int64_t>(aligned(sizeof(Header)) + 2 * aligned(kMostName));
  const int64_t bytes = std::max(kRowBytes, pixels + beside);
  constexpr int64_t kLine = 64;
  return (bytes + kLine - 1) / kLine * kLine;
}

std::string kept_here(const ImageInfo& info) {
  if (info.format != Format::kJpeg) return format_name(info.format);
  return info.unusual == nullptr ? "" : info.unusual;
}

std::string store_jpeg(const JpegPlan& plan, std::span<const uint8_t> file, std::string_view name,
                       std::span<uint8_t> row) {
  constexpr const char* kLarge = "large JPEG";
  const Geometry& g = plan.geometry;
  if (int64_t{3} * plan.stored.width * plan.stored.height > kDecodedBytes || file.size() > row.size()) return kLarge;
  const Taps columns = wanted(g.window.x, g.window.width, g.resized.width);
  const Taps rows = wanted(g.window.y, g.window.height, g.resized.height);
  Header header = header_of(plan, columns, rows);
  if (int64_t{3} * header.used * (columns.last - columns.first) > kDecodedBytes) return kLarge;
  const Axis across = make_axis(g.source.width, g.resized.width, columns);
  const Axis down = make_axis(g.source.height, g.resized.height, rows);
  name = name.substr(0, kMostName);
  header.name_bytes = static_cast<uint32_t>(name.size());
  header.table_bytes = static_cast<uint32_t>(table_bytes(across) + table_bytes(down));
  header.file_bytes = static_cast<uint32_t>(file.size());
  header.across = in_row(across);
  header.down = in_row(down);
  if (bytes_of(header) > row.size()) return kLarge;
  Writer writer(row);
  begin_row(writer, header, name, {});
  put_tables(writer.block(header.table_bytes), across, down);
  writer.put(file.data(), file.size());
  writer.end();
  return {};
}

std::span<uint8_t> store_pixels(std::string_view why, std::string_view name, size_t bytes, std::span<uint8_t> row) {
  name = name.substr(0, kMostName);
  why = why.substr(0, kMostName);
  const Header header{.name_bytes = static_cast<uint32_t>(name.size()),
                      .why_bytes = static_cast<uint32_t>(why.size()),
                      .file_bytes = static_cast<uint32_t>(bytes)};
  if (why.empty() || bytes_of(header) > row.size()) {
    throw BugError(name, ": ", bytes, " bytes of pixels have no place in a row of ", row.size());
  }
  Writer writer(row);
  begin_row(writer, header, name, why);
  const std::span<uint8_t> pixels = writer.block(bytes);
  writer.end();
  return pixels;
}

PictureRow read_row(std::span<const uint8_t> row) {
  Header header{.mark = 0};
  if (row.size() >= sizeof(header)) std::memcpy(&header, row.data(), sizeof(header));
  if (header.mark != kMark || bytes_of(header) > row.size()) throw BugError("a row of a batch holds no picture");
  size_t at = aligned(sizeof(header));
  const auto block = [&](size_t bytes) {
    const auto part = row.subspan(at, bytes);
    at = std::min(row.size(), at + aligned(bytes));
    return part;
  };
  const auto text = [&](size_t bytes) {
    const auto part = block(bytes);
    return std::string_view(reinterpret_cast<const char*>(part.data()), part.size());
  };
  PictureRow picture;
  picture.name = text(header.name_bytes);
  picture.why = text(header.why_bytes);
  picture.tables = block(header.table_bytes);
  picture.file = block(header.file_bytes);
  picture.stored = {header.stored_width, header.stored_height};
  picture.orientation = header.orientation;
  picture.geometry = {.image = {header.image_width, header.image_height},
                      .source = header.source,
                      .resized = {header.resized_width, header.resized_height},
                      .window = header.window,
                      .flip_x = header.flip_x != 0,
                      .flip_y = header.flip_y != 0,
                      .fill = static_cast<uint8_t>(header.fill)};
  picture.across = header.across;
  picture.down = header.down;
  picture.first_used = header.first_used;
  picture.used = header.used;
  return picture;
}

}  // namespace lockstep::image
