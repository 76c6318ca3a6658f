#pragma once

#include <cstddef>
#include <string_view>

namespace thalweg::base {

// Whether somebody can read it as it is: valid UTF-8 (RFC 3629) without control characters, but for tabs and ends of
// lines.
bool is_plain_text(std::string_view bytes);

// The longest beginning of at most so many bytes that does not end inside a character. Other bytes than UTF-8 lose
// three at most.
std::string_view cut_at_character(std::string_view text, size_t bytes_max);

}  // namespace thalweg::base
