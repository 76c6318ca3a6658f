#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace thalweg::control {

// "127.0.0.1:8643", "[::1]:8643" or "localhost:8643". Fails with invalid_request.
base::Result<std::pair<std::string, int>> parse_listen_address(std::string_view text);
bool is_loopback(std::string_view host);

}  // namespace thalweg::control
