#pragma once

#include <string_view>

namespace thalweg::base {

// Whether somebody can read it as it is: valid UTF-8 (RFC 3629) without control characters, but for tabs and ends of
// lines.
bool is_plain_text(std::string_view bytes);

}  // namespace thalweg::base
