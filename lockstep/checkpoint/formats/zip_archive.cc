#include "lockstep/checkpoint/formats/zip_archive.h"

#include <zip.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/printable.h"

namespace lockstep::checkpoint {
namespace {

// The most bytes of compressed entries, which bounds zip bombs. torch.save never compresses, but a file that was packed
// again may.
constexpr uint64_t kMaxUnpackedBytes = 64u << 20;

bool leads_out(const std::string& name) {
  const std::filesystem::path path(name);
  return path.is_absolute() || name.find('\\') != std::string::npos ||
         std::find(path.begin(), path.end(), "..") != path.end();
}

struct FileCloser {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};

}  // namespace

struct ZipArchive::Handle {
  explicit Handle(zip_t* opened) : zip(opened) {}
  ~Handle() { zip_discard(zip); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  zip_t* zip;
};

ZipArchive::ZipArchive(std::string path, const InputFile& file, Headers headers) : path_(std::move(path)) {
  int code = 0;
  const std::string opened = cat("/proc/self/fd/", file.fd.get());
  zip_t* zip = zip_open(opened.c_str(), ZIP_RDONLY | (headers == Headers::kCompared ? ZIP_CHECKCONS : 0), &code);
  if (zip == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    throw DataError(path_, ": a zip archive that is cut short or damaged (", reason, "); use another copy of it");
  }
  handle_ = std::make_unique<Handle>(zip);
  const auto count = static_cast<uint64_t>(std::max<zip_int64_t>(zip_get_num_entries(zip, 0), 0));
  for (uint64_t i = 0; i < count; ++i) {
    const char* raw = zip_get_name(zip, i, ZIP_FL_ENC_RAW);
    std::string name = raw == nullptr ? "" : raw;
    if (leads_out(name)) throw DataError(path_, ": holds an entry that leads out of the archive, ", printable(name));
    if (!positions_.emplace(name, i).second) throw DataError(path_, ": holds the entry ", printable(name), " twice");
    names_.push_back(std::move(name));
  }
}

ZipArchive::~ZipArchive() = default;

uint64_t ZipArchive::position(const std::string& name) const {
  const auto found = positions_.find(name);
  if (found == positions_.end()) throw DataError(path_, ": its entry ", printable(name), " is missing");
  return found->second;
}

uint64_t ZipArchive::size(const std::string& name) const {
  zip_stat_t status;
  if (zip_stat_index(handle_->zip, position(name), 0, &status) != 0 || (status.valid & ZIP_STAT_SIZE) == 0) {
    throw DataError(path_, ": ", printable(name), ": has no size");
  }
  return status.size;
}

void ZipArchive::check_packing(const std::string& name) {
  zip_stat_t status;
  const bool known = zip_stat_index(handle_->zip, position(name), 0, &status) == 0;
  if (known && (status.valid & ZIP_STAT_COMP_METHOD) != 0 && status.comp_method == ZIP_CM_STORE) return;
  const uint64_t bytes = size(name);
  if (bytes > kMaxUnpackedBytes - unpacked_) {
    throw DataError(path_, ": ", printable(name), ": is compressed and would unpack to ", human_bytes(bytes),
                    "; pack it without compression, as torch.save does");
  }
  unpacked_ += bytes;
}

std::string ZipArchive::read(const std::string& name, uint64_t most) {
  const uint64_t bytes = size(name);
  if (bytes > most) {
    throw DataError(path_, ": ", printable(name), ": is of ", human_bytes(bytes), ", more than the ", human_bytes(most),
                    " that a checkpoint's may have");
  }
  std::string content(bytes, '\0');
  read_into(name, content.data(), bytes);
  return content;
}

void ZipArchive::read_into(const std::string& name, void* memory, uint64_t bytes) {
  if (size(name) != bytes) {
    throw DataError(path_, ": ", printable(name), ": holds ", size(name), " bytes where ", bytes, " are needed");
  }
  read_through(name, bytes, [memory](uint64_t done, uint64_t&) { return static_cast<char*>(memory) + done; });
}

void ZipArchive::check(const std::string& name) {
  constexpr uint64_t kBlock = 1 << 20;
  std::string block(std::min(size(name), kBlock), '\0');
  read_through(name, size(name), [&block](uint64_t, uint64_t& bytes) {
    bytes = std::min<uint64_t>(bytes, block.size());
    return block.data();
  });
}

void ZipArchive::read_through(const std::string& name, uint64_t bytes, const Take& take) {
  check_packing(name);
  const std::unique_ptr<zip_file_t, FileCloser> file(zip_fopen_index(handle_->zip, position(name), 0));
  if (!file) throw DataError(path_, ": ", printable(name), ": ", zip_strerror(handle_->zip));
  for (uint64_t done = 0; done < bytes;) {
    uint64_t most = bytes - done;
    char* const to = take(done, most);
    const zip_int64_t count = zip_fread(file.get(), to, most);
    if (count <= 0) {
      throw DataError(path_, ": ", printable(name), ": damaged after ", done, " of ", bytes, " bytes (",
                      zip_file_strerror(file.get()), ")");
    }
    done += static_cast<uint64_t>(count);
  }
  char beyond;  // libzip compares the checksum when it is asked for what is beyond the end
  if (zip_fread(file.get(), &beyond, 1) != 0) {
    throw DataError(path_, ": ", printable(name), ": damaged (", zip_file_strerror(file.get()), ")");
  }
}

}  // namespace lockstep::checkpoint
