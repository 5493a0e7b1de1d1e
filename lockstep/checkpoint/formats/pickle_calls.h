// What a pickle asks to be called, imitated: tensors over storages, and containers that are passed through.
#pragma once

#include "lockstep/checkpoint/formats/pickle_heap.h"
#include "lockstep/checkpoint/formats/storage_source.h"

namespace lockstep::checkpoint {

// The result of `global(*arguments)`. Throws a Fault unless the arguments are those that torch.save writes.
Item call_global(Heap& heap, const Global& global, const Item& arguments);

// The storage that a persistent id, ('storage', class, key, location, elements), names. Storages are taken to the CPU
// whatever their location says. `source` may be nullptr: then every id is a Fault.
Item load_persistent(Heap& heap, const Item& id, StorageSource* source);

}  // namespace lockstep::checkpoint
