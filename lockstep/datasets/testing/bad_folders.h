// For tests: folders of data in which something is wrong, or odd.
#pragma once

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>

#include "lockstep/base/shared_memory.h"
#include "lockstep/datasets/packed/testing/record_io_file.h"
#include "lockstep/datasets/testing/cifar_files.h"
#include "lockstep/datasets/testing/packed_files.h"
#include "lockstep/datasets/testing/picture_files.h"

namespace lockstep::datasets::testing {

struct BadFolder {
  const char* name;
  std::function<void(const TempDir&)> make;
  std::string why;          // in the line that refuses it; empty: it is read
  bool unreadable = false;  // for those who are not root
};

using BadFolders = std::vector<BadFolder>;

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Turns bits of the byte `at`, from the end where it is negative.
inline void damage(const std::string& path, int64_t at) {
  std::string bytes = content_of(path);
  char& byte = bytes.at(static_cast<size_t>(at < 0 ? std::ssize(bytes) + at : at));
  byte = static_cast<char>(byte ^ 0x24);
  std::ofstream(path, std::ios::binary) << bytes;
}

inline void cut(const std::string& path, int64_t by) {
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - static_cast<uintmax_t>(by));
}

inline void make_socket(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  if (path.size() >= sizeof(address.sun_path)) throw IoError(path, ": too long for a socket");
  path.copy(address.sun_path, path.size());
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw IoError(path, ": no socket: ", errno_text(errno));
  }
}

// Two classes of two pictures, and what `more` adds to them.
inline auto with_classes(std::function<void(const TempDir&)> more) {
  return [more = std::move(more)](const TempDir& dir) {
    write_classes(dir, "", {"cats", "dogs"}, 2);
    more(dir);
  };
}

inline auto with_picture(const std::string& name, const std::string& content) {
  return with_classes([=](const TempDir& dir) { write_deep(dir, name, content); });
}

inline BadFolders odd_class_folders() {
  namespace fs = std::filesystem;
  const std::string none = "is no image that is read here", page = "<html>404</html>";
  return {
      {"nothing", [](const TempDir&) {}, "no images with classes"},
      {"a file of no kind", [](const TempDir& dir) { dir.write("notes.txt", "x"); }, "no images with classes"},
      {"an empty class", with_classes([](const TempDir& dir) { fs::create_directory(dir / "eels"); }),
       "eels: a class folder without images"},
      {"a class of texts", with_picture("eels/notes.txt", "x"), "eels: a class folder without images"},
      {"a picture beside the classes", with_picture("1.jpg", jpeg()), "1.jpg: an image beside the class folders"},
      {"a page for a picture", with_picture("cats/2.jpg", page), "cats/2.jpg: it " + none},
      {"a picture of nothing", with_picture("cats/2.jpg", ""), "cats/2.jpg: the file is empty"},
      {"half a picture", with_picture("cats/2.jpg", jpeg().substr(0, 500)), "cats/2.jpg: a damaged JPEG"},
      {"another format's ending", with_picture("cats/2.gif", png()), ""},
      {"endings in capitals", with_picture("cats/2.JPEG", jpeg()), ""},
      {"a folder named as a picture", with_picture("cats/2.jpg/3.jpg", jpeg()), ""},
      {"an empty folder named as a picture",
       with_classes([](const TempDir& dir) { fs::create_directory(dir / "cats/2.jpg"); }), ""},
      {"a picture named as a folder", with_picture("cats/.jpg", jpeg()), ""},
      {"spaces", with_picture(" my cats /a picture .jpg", jpeg()), ""},
      {"letters of many tongues", with_picture("g\xc3\xb6tter/\xe7\x8c\xab\xf0\x9f\x90\x88.jpg", jpeg()), ""},
      {"names that are no text", with_picture("\xff\xfe/\x80.jpg", jpeg()), ""},
      {"lines in a name", with_picture("two\nlines/and\nmore\r.jpg", jpeg()), ""},
      {"a page whose name has lines", with_picture("two\nlines/\x1b[31mred\n.jpg", page),
       "two\\nlines/\\x1b[31mred\\n.jpg: it " + none},
      {"a name of 255 bytes", with_picture("cats/" + std::string(251, 'x') + ".jpg", jpeg()), ""},
      {"quotes and dashes in names", with_picture("-rf \"$(x)\" 'y' \\ %s/{}.jpg", jpeg()), ""},
      {"a hidden page", with_picture("cats/.2.jpg", page), ""},
      {"a link to nothing", with_classes([](const TempDir& dir) { fs::create_symlink("gone", dir / "cats/2.jpg"); }),
       "cats/2.jpg: can't be looked at: No such file"},
      {"a link to itself", with_classes([](const TempDir& dir) { fs::create_symlink("2.jpg", dir / "cats/2.jpg"); }),
       "cats/2.jpg: can't be looked at: Too many levels"},
      {"a link to the folder above",
       with_classes([](const TempDir& dir) { fs::create_symlink("..", dir / "cats/up"); }), "cats/up: leads back"},
      {"a link to a device",
       with_classes([](const TempDir& dir) { fs::create_symlink("/dev/zero", dir / "cats/2.jpg"); }),
       "cats/2.jpg: is a device"},
      {"a pipe", with_classes([](const TempDir& dir) { mkfifo((dir / "cats/2.jpg").c_str(), 0600); }),
       "cats/2.jpg: is a device, pipe or socket"},
      {"a socket", with_classes([](const TempDir& dir) { make_socket(dir / "cats/2.jpg"); }),
       "cats/2.jpg: is a device, pipe or socket"},
      {"folders in folders", with_picture("cats/1/2/3/4/5/6/7/8/9/1.jpg", jpeg()), "lies deeper than 8 folders"},
      {"a picture that may not be read",
       with_classes([](const TempDir& dir) { chmod((dir / "cats/1.jpg").c_str(), 0); }), "Permission denied", true},
      {"a folder that may not be read", with_classes([](const TempDir& dir) { chmod((dir / "cats").c_str(), 0); }),
       "Permission denied", true},
  };
}

// A picture's mask of two classes, of its size.
inline std::string mask_file(image::Size size = {40, 30}) {
  image::Pixels mask = image::testing_support::flat(size, 1, 0);
  *mask.at(1, 1) = 255;
  return text_of(image::encode_png(mask));
}

// Three pairs, the first of which is replaced by `image` and `mask`.
inline auto with_pair(const std::string& image, const std::string& mask, const std::string& ending = "png") {
  return [=](const TempDir& dir) {
    for (const char* name : {"2", "3"}) {
      write_deep(dir, cat("imgs/", name, ".jpg"), jpeg());
      write_deep(dir, cat("masks/", name, ".png"), mask_file());
    }
    if (!image.empty()) write_deep(dir, "imgs/1.jpg", image);
    if (!mask.empty()) write_deep(dir, "masks/1." + ending, mask);
  };
}

inline std::string turned_png(int orientation) {
  return text_of(image::encode_png(image::testing_support::picture({40, 30}), {.orientation = orientation}));
}

inline BadFolders odd_pairs() {
  return {
      {"a smaller mask", with_pair(jpeg(), mask_file({20, 15})), "masks/1.png: a mask of 20 x 15 pixels"},
      {"a mask on its side", with_pair(jpeg(), mask_file({30, 40})), "masks/1.png: a mask of 30 x 40 pixels"},
      {"no mask", with_pair(jpeg(), ""), "1 of 3 images have no mask: imgs/1.jpg"},
      {"no picture", with_pair("", mask_file()), "1 of 3 masks have no image: masks/1.png"},
      {"a page for a mask", with_pair(jpeg(), "<html></html>"), "masks/1.png: it is no image"},
      {"a page for a picture", with_pair("<html></html>", mask_file()), "imgs/1.jpg: it is no image"},
      {"half a mask", with_pair(jpeg(), mask_file().substr(0, 60)), "masks/1.png: a damaged PNG"},
      {"a mask that was stored as a JPEG", with_pair(jpeg({200, 200}), jpeg({200, 200}), "jpg"),
       "masks/1.jpg: with this mask there are more than 256 values"},
      {"a picture on its head", with_pair(turned_png(3), mask_file()), "masks/1.png: whether the mask is turned"},
      {"a picture on its side", with_pair(turned_png(6), mask_file()), ""},
      {"a picture on its side and an upright mask", with_pair(turned_png(6), mask_file({30, 40})), ""},
      {"two masks of a name",
       [](const TempDir& dir) {
         with_pair(jpeg(), mask_file())(dir);
         write_deep(dir, "masks/1_mask.png", mask_file());
       },
       "has the same name"},
      {"masks of one value",
       [](const TempDir& dir) {
         write_deep(dir, "imgs/1.png", png());
         write_deep(dir, "masks/1.png", text_of(image::encode_png(image::testing_support::flat({40, 30}, 1, 7))));
       },
       "all masks have one value alone (7)"},
  };
}

inline auto spoiled_cifar(std::function<void(const TempDir&)> spoil) {
  return [spoil = std::move(spoil)](const TempDir& dir) {
    write_cifar10(dir);
    spoil(dir);
  };
}

inline auto records(const std::string& bytes) {
  return [=](const TempDir& dir) { dir.write("train.rec", bytes); };
}

// Two sound records, in which `spoil` changes something.
inline auto spoiled_records(std::function<void(const std::string& path)> spoil) {
  return [spoil = std::move(spoil)](const TempDir& dir) {
    dir.write("train.rec", record_io(image_record(0, jpeg())) + record_io(image_record(1, jpeg())));
    spoil(dir / "train.rec");
  };
}

inline BadFolders odd_files_of_records() {
  namespace fs = std::filesystem;
  const auto batch = [](const TempDir& dir) { return dir / "data_batch_3.bin"; };
  return {
      {"CIFAR of a byte too few", spoiled_cifar([=](const TempDir& dir) { cut(batch(dir), 1); }), "no whole images"},
      {"CIFAR of nothing", spoiled_cifar([=](const TempDir& dir) { dir.write("data_batch_3.bin", ""); }),
       "no whole images"},
      {"CIFAR of a class too many",
       spoiled_cifar([](const TempDir& dir) { dir.write("data_batch_3.bin", '\x0a' + std::string(3072, 0)); }),
       "byte 0: class 10"},
      {"CIFAR without a batch", spoiled_cifar([=](const TempDir& dir) { fs::remove(batch(dir)); }), "No such file"},
      {"CIFAR with a folder for a batch",
       spoiled_cifar([=](const TempDir& dir) { fs::remove(batch(dir)), fs::create_directory(batch(dir)); }),
       "is a directory"},
      {"CIFAR with a pipe for a batch",
       spoiled_cifar([=](const TempDir& dir) { fs::remove(batch(dir)), mkfifo(batch(dir).c_str(), 0600); }), "pipe"},
      {"records of nothing", records(""), "holds no records"},
      {"a page for records", records("<html>404</html>"), "no RecordIO record begins here"},
      {"records cut in a head", spoiled_records([](const std::string& path) { fs::resize_file(path, 5); }),
       "ends within"},
      {"records cut in an image", spoiled_records([](const std::string& path) { cut(path, 100); }), "is cut short"},
      {"a record of 512 MiB", spoiled_records([](const std::string& path) { damage(path, 7), damage(path, 4); }),
       "byte"},
      {"a record of another magic", spoiled_records([](const std::string& path) { damage(path, 1); }),
       "no RecordIO record"},
      {"a record that is a middle", records(part(2, image_record(0, jpeg()))), "a later part"},
      {"a record without its end", records(part(1, image_record(0, jpeg()))), "the last part of a record is missing"},
      {"a record of no class", records(record_io(image_record(0.5f, jpeg()))), "is no class"},
      {"a record of class 1e30", records(record_io(image_record(1e30f, jpeg()))), "is no class"},
      {"a record of five classes", records(record_io(image_record(1, jpeg(), 5))), "5 labels"},
      {"a record too short", records(record_io("short")), "too short for an image"},
      {"a page for a record's image", records(record_io(image_record(0, "<html></html>"))),
       "record 0 at byte 0: it is no image"},
      {"an index of other records", spoiled_records([](const std::string& path) {
         std::ofstream(fs::path(path).replace_extension(".idx")) << "0\t0\n";
       }),
       "lists 1"},
  };
}

// Two shards, of two records and one.
inline auto spoiled_shards(std::function<void(const TempDir&)> spoil, Codec codec = Codec::kJpeg) {
  return [spoil = std::move(spoil), codec](const TempDir& dir) {
    write_packed(dir.path(), {{jpeg(), jpeg()}, {jpeg()}}, codec, {40, 30});
    spoil(dir);
  };
}

inline auto damaged_shard(int64_t at) {
  return spoiled_shards([=](const TempDir& dir) { damage(dir / "shard-0.lks", at); });
}

inline auto manifest(const std::string& text) {
  return spoiled_shards([=](const TempDir& dir) { dir.write("manifest.json", text); });
}

inline BadFolders odd_packed_data() {
  namespace fs = std::filesystem;
  const auto shard = [](const TempDir& dir) { return dir / "shard-0.lks"; };
  const std::string begin =
      R"({"format":"lockstep packed","version":1,"kind":"images","source":"","packing":"","classes":[],)";
  return {
      {"sound shards", spoiled_shards([](const TempDir&) {}), ""},
      {"a shard of another kind", damaged_shard(0), "no shard of packed data"},
      {"a shard of another version", damaged_shard(4), "packed data of version"},
      {"a shard of other counts", damaged_shard(8), "the head's checksum"},
      {"a damaged record", damaged_shard(200), "record 0 (0-0.img) at byte 64: its checksum"},
      {"damaged names", damaged_shard(-20), "the names' checksum"},
      {"a damaged index", damaged_shard(-100), "checksum"},
      {"a shard that was cut", spoiled_shards([=](const TempDir& dir) { cut(shard(dir), 1); }), "shard-0.lks: "},
      {"half a shard", spoiled_shards([=](const TempDir& dir) { cut(shard(dir), 1500); }), "shard-0.lks: "},
      {"a shard of nothing", spoiled_shards([](const TempDir& dir) { dir.write("shard-0.lks", ""); }),
       "ends within its head"},
      {"no shard", spoiled_shards([=](const TempDir& dir) { fs::remove(shard(dir)); }), "shard-0.lks: can't be read"},
      {"a pipe for a shard",
       spoiled_shards([=](const TempDir& dir) { fs::remove(shard(dir)), mkfifo(shard(dir).c_str(), 0600); }), "pipe"},
      {"a shard of another data set", spoiled_shards([=](const TempDir& dir) {
         fs::copy_file(dir / "shard-1.lks", shard(dir), fs::copy_options::overwrite_existing);
       }),
       "they don't belong together"},
      {"pages in shards", [](const TempDir& dir) { write_packed(dir.path(), {{"<html></html>"}}); },
       "(0-0.img): it is no image"},
      {"raw pixels of another size", spoiled_shards([](const TempDir&) {}, Codec::kRaw), "(0-0.img): "},
      {"a manifest of nothing", manifest(""), "manifest.json: no manifest of packed data"},
      {"half a manifest", manifest("{\"format\":\"lockstep pa"), "no manifest of packed data"},
      {"another manifest", manifest("{\"name\":\"a web page\"}"), "no manifest of packed data"},
      {"a manifest of brackets", manifest(std::string(1'000'000, '[')), "no manifest of packed data"},
      {"a manifest of 17 MiB", manifest(std::string(17 << 20, ' ')), "are too many"},
      {"a manifest without shards", manifest(begin + "\"shards\":[]}"), "packed data without images"},
      {"a shard elsewhere", manifest(begin + R"("shards":[{"file":"../x","records":1,"bytes":2,"xxh3":"1"}]})"),
       "is named"},
      {"a shard whose name has lines",
       manifest(begin + R"("shards":[{"file":"a\n\u001b","records":1,"bytes":2,"xxh3":"1"}]})"),
       "a\\n\\x1b: can't be read"},
      {"fewer records than none", manifest(begin + R"("shards":[{"file":"a","records":-1,"bytes":2,"xxh3":"1"}]})"),
       "a number of records or bytes is none"},
  };
}

}  // namespace lockstep::datasets::testing
