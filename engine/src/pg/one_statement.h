#pragma once

#include <string_view>

namespace thalweg::pg {

// Whether SQL that was put together from another server's texts is at most one statement: nothing behind a semicolon
// outside quotes, no comment that would hide the rest. For sessions with standard_conforming_strings on. Quotes that
// are open at the end count as more.
bool is_one_statement(std::string_view sql);

}  // namespace thalweg::pg
