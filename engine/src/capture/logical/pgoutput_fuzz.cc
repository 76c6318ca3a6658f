#include <cstdint>
#include <cstdlib>
#include <vector>

#include "capture/logical/frame_translator.h"
#include "capture/logical/pgoutput_parser.h"

// Input: messages, each behind a length of two bytes (big-endian; the last one may be cut). They go through parser and
// translator as from one connection; every frame that comes out must decode.

namespace {

class CheckingSink final : public thalweg::capture::FrameSink {
 public:
  std::span<std::byte> reserve(size_t frame_bytes) override {
    frame_.resize(frame_bytes);
    return frame_;
  }
  void enqueue() override {
    if (!thalweg::lcr::FrameView::decode(frame_)) std::abort();
  }

 private:
  std::vector<std::byte> frame_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  CheckingSink sink;
  thalweg::capture::PgoutputParser parser;
  thalweg::capture::FrameTranslator translator(sink);
  auto rest = std::as_bytes(std::span{data, size});
  while (rest.size() >= 2) {
    const size_t length = std::to_integer<size_t>(rest[0]) << 8 | std::to_integer<size_t>(rest[1]);
    rest = rest.subspan(2);
    // A copy of exactly the message's size, so that the sanitizer sees any read behind it.
    const auto part = rest.first(std::min(length, rest.size()));
    const std::vector<std::byte> message(part.begin(), part.end());
    rest = rest.subspan(message.size());
    const auto parsed = parser.parse(message);
    if (!parsed || !translator.translate(**parsed, parser, thalweg::base::Lsn{1})) break;
  }
  return 0;
}
