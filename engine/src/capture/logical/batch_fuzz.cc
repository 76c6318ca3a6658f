#include <cstdint>
#include <cstdlib>
#include <vector>

#include "capture/logical/batch_reader.h"
#include "capture/logical/pgoutput_parser.h"

// Input: one batch. Every message lies inside it, and the parser takes what comes.

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly the batch's size, so that the sanitizer sees any read behind it.
  const auto input = std::as_bytes(std::span{data, size});
  const std::vector<std::byte> bytes(input.begin(), input.end());
  thalweg::capture::BatchReader batch(bytes);
  thalweg::capture::PgoutputParser parser;
  size_t taken = 0;
  while (true) {
    const auto message = batch.next();
    if (!message || !*message) break;
    taken += (*message)->bytes.size();
    if (taken > bytes.size()) std::abort();
    if (!parser.parse((*message)->bytes)) break;
  }
  return 0;
}
