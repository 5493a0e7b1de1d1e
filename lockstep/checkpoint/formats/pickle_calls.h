// The calls that a pickle asks for, imitated: tensors are rebuilt over storages, containers are passed through.
#pragma once

#include "lockstep/checkpoint/formats/pickle_heap.h"
#include "lockstep/checkpoint/formats/storage_source.h"

namespace lockstep::checkpoint {

// The result of `global(*arguments)`. Throws a Fault unless the arguments are those that torch.save writes.
Item call_global(Heap& heap, const Global& global, const Item& arguments);

// Loads the storage that a persistent id names: ('storage', class, key, location, elements). It lies on the CPU
// whatever the location says. With `source` nullptr every id is a Fault.
Item load_persistent(Heap& heap, const Item& id, StorageSource* source);

}  // namespace lockstep::checkpoint
