#include "disk.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "lockstep/base/error.h"
#include "lockstep/checkpoint/formats/testing/files.h"

namespace lockstep::faults {
namespace {

namespace fs = std::filesystem;
using Kind = DiskCall::Kind;
using checkpoint::testing_support::read_file;
using checkpoint::testing_support::write_file;

constexpr uint64_t kPage = 4096;

std::string folder_of(const std::string& name) {
  const size_t slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

Disk::Entry entry_at(const fs::path& path) {
  if (fs::is_symlink(path)) return {Disk::Entry::Kind::kLink, fs::read_symlink(path).string()};
  if (fs::is_directory(path)) return {Disk::Entry::Kind::kFolder, ""};
  return {Disk::Entry::Kind::kFile, read_file(path.string())};
}

template <typename Change>
void carry_out(const Change& change, std::map<std::string, int>& names) {
  if (!change.removed.empty()) names.erase(change.removed);
  if (!change.made.empty()) names[change.made] = change.file;
}

template <typename Piece>
void write_piece(const Piece& piece, std::string& content) {
  if (piece.data.empty()) return content.resize(piece.offset);
  content.resize(std::max<uint64_t>(content.size(), piece.offset + piece.data.size()));
  content.replace(piece.offset, piece.data.size(), piece.data);
}

}  // namespace

Disk::Disk(const std::string& folder) {
  for (const auto& each : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::path(each.path()).lexically_relative(folder).string();
    durable_[name] = static_cast<int>(files_.size());
    files_.push_back({.durable = entry_at(each.path()), .pieces = {}});
  }
  now_ = durable_;
}

int Disk::file(const std::string& name) const {
  const auto found = now_.find(name);
  return found == now_.end() ? -1 : found->second;
}

void Disk::apply(const DiskCall& call) {
  if (call.result < 0) return;
  switch (call.kind) {
    case Kind::kOpen:
      return open(call);
    case Kind::kWrite:
      return write(file(call.name), call.offset, call.data);
    case Kind::kTruncate:
      return write(file(call.name), call.offset, "");
    case Kind::kSync:
      return sync(call.name);
    case Kind::kRename:
      return change({call.name, call.other, file(call.name)});
    case Kind::kLink:
      return make(call.name, {Entry::Kind::kLink, call.other});
    case Kind::kMakeFolder:
      return make(call.name, {Entry::Kind::kFolder, ""});
    case Kind::kUnlink:
      return change({.removed = call.name, .made = ""});
    case Kind::kNote:
      return;
  }
}

void Disk::open(const DiskCall& call) {
  const int known = file(call.name);
  if (known < 0) return make(call.name, {Entry::Kind::kFile, ""});
  if (call.truncates) write(known, 0, "");
}

// A file that has lost its name can't come back.
void Disk::write(int file, uint64_t offset, const std::string& data) {
  if (file < 0) return;
  auto& pieces = files_[static_cast<size_t>(file)].pieces;
  if (data.empty()) pieces.push_back({offset, ""});
  for (uint64_t done = 0; done < data.size();) {
    const uint64_t count = std::min(data.size() - done, kPage - (offset + done) % kPage);
    pieces.push_back({offset + done, data.substr(done, count)});
    done += count;
  }
}

void Disk::make(const std::string& name, Entry entry) {
  files_.push_back({.durable = std::move(entry), .pieces = {}});
  change({.removed = "", .made = name, .file = static_cast<int>(files_.size()) - 1});
}

void Disk::change(const NameChange& change) {
  names_.push_back(change);
  carry_out(change, now_);
}

void Disk::sync(const std::string& name) {
  const int synced = file(name);
  if (synced >= 0 && files_[static_cast<size_t>(synced)].durable.kind == Entry::Kind::kFile) {
    File& file = files_[static_cast<size_t>(synced)];
    for (const Piece& piece : file.pieces) write_piece(piece, file.durable.content);
    return file.pieces.clear();
  }
  const auto is_inside = [&](const NameChange& change) {
    return folder_of(change.made.empty() ? change.removed : change.made) == name;
  };
  for (const NameChange& change : names_) {
    if (is_inside(change)) carry_out(change, durable_);
  }
  std::erase_if(names_, is_inside);
}

size_t Disk::unsettled() const {
  size_t count = names_.size();
  for (const File& file : files_) count += file.pieces.size();
  return count;
}

Disk::Image Disk::after_power_cut(const std::function<bool(size_t change)>& survives) const {
  size_t number = 0;
  std::map<std::string, int> names = durable_;
  for (const NameChange& change : names_) {
    if (survives(number++)) carry_out(change, names);
  }
  std::vector<std::string> contents;
  for (const File& file : files_) {
    contents.push_back(file.durable.content);
    for (const Piece& piece : file.pieces) {
      if (survives(number++)) write_piece(piece, contents.back());
    }
  }
  Image image;
  for (const auto& [name, file] : names) {
    const auto index = static_cast<size_t>(file);
    // What lies in a folder whose own name was lost is lost.
    const auto above = names.find(folder_of(name));
    if (!folder_of(name).empty() && above == names.end()) continue;
    image[name] = {files_[index].durable.kind, contents[index]};
  }
  return image;
}

void lay_out(const Disk::Image& image, const std::string& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const auto& [name, entry] : image) {  // a folder's name comes before those in it
    const std::string path = folder + '/' + name;
    if (entry.kind == Disk::Entry::Kind::kFolder) fs::create_directory(path);
    if (entry.kind == Disk::Entry::Kind::kLink) fs::create_symlink(entry.content, path);
    if (entry.kind == Disk::Entry::Kind::kFile) write_file(path, entry.content);
  }
}

}  // namespace lockstep::faults
