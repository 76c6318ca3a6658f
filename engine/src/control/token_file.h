#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

// The bearer token of the control API.

namespace thalweg::control {

// Reads the token, without surrounding white space; a missing file is created with 256 random bits, mode 0600.
// Fails with file_error, and with state_directory_failed when others than the owner may read the file or when it holds
// too short a token.
base::Result<std::string> load_or_create_token(const std::filesystem::path& path);

// Takes as long for a wrong token as for the right one.
bool same_token(std::string_view given, std::string_view expected);

}  // namespace thalweg::control
