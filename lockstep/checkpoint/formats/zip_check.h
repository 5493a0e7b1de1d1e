// What libzip does not look at in an archive before it opens it: how much memory the directory will take, and whether
// its entries are such as a checkpoint's.
#pragma once

#include <string>

#include "lockstep/checkpoint/formats/file_reader.h"
#include "lockstep/checkpoint/formats/memory_budget.h"

namespace lockstep::checkpoint {

// Charges what the archive's directory takes when it is opened: libzip and ZipArchive keep some hundred bytes about
// each entry, and an entry may be of 46 bytes in the file. Throws DataError that names the file and the entry: if the
// budget has less, for entries that overlap, that are encrypted, that are symbolic links, or whose names hold a NUL,
// where programs disagree on what they are. Throws as read_at() does. Of a file without a directory, or with one that
// is damaged, it says nothing: libzip refuses those. The disk is asked for the headers of large entries, which libzip
// reads next.
void check_zip_directory(const std::string& path, const InputFile& file, MemoryBudget& budget);

}  // namespace lockstep::checkpoint
