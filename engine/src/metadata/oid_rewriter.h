#pragma once

#include <cstddef>
#include <span>

#include "base/error.h"
#include "metadata/type_catalog.h"

// Binary arrays and composites carry the oids of their elements' types, and the oids of user types differ between
// source and destination. The receiving functions compare them, so they have to be the destination's.

namespace thalweg::metadata {

// Replaces, in place and recursively, the type oids in one binary value of the destination type `type`. The length
// does not change. Does nothing unless type.embeds_oids.
// Fails with destination_table_differs when the value's structure is not the type's (another number of fields), or
// its bytes end early.
base::Result<void> rewrite_oids(const TypeNode& type, std::span<std::byte> value);

}  // namespace thalweg::metadata
