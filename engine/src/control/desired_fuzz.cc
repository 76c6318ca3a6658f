// Feeds foreign bytes to the parser of desired states: it is total, refuses with a message that names the place, and
// what it accepts is written and read again without a change.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "control/desired_state.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace thalweg::control;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(parse_stored_desired(text));
  const auto desired = parse_desired(text);
  if (!desired) {
    require(desired.error().code == thalweg::base::ErrorCode::invalid_request);
    require(!desired.error().message.empty());
    return 0;
  }
  const auto again = parse_stored_desired(serialise(*desired));
  require(again.has_value());
  require(again->revision == desired->revision && again->streams == desired->streams);
  for (size_t i = 0; i < desired->streams.size(); ++i) {
    require(fingerprint(desired->streams[i]) == fingerprint(again->streams[i]));
  }
  return 0;
}
