#pragma once

#include <atomic>
#include <cassert>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

#include "base/doorbell.h"

// The wait-free queue of seed 000, section III (figures 5 and 6): a fixed circular buffer with one producer and C
// consumers, each of which sees every item.
//
//   items[0..N-1]   tail: next free slot, written by the producer only
//                   head[i]: consumer i's next item, written by consumer i only
//   empty[i]  <=>  head[i] == tail
//   full      <=>  for some i, head[i] == tail + 1 mod N      (one slot is always unused)
//
// try_enqueue, try_browse and dequeue end in a bounded number of steps; atomic reads and writes only, no
// compare-and-swap. The blocking forms add bounded waits on doorbells.
// (H1 writes the body.)
