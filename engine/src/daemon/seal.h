#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"

namespace thalweg::daemon {

// Encrypts what the engine keeps on its disk and nobody else may read: the desired state, with the databases' passwords
// (docs/reference/secrets.md). AES-256-GCM with a key of the engine's own; what is sealed names its key and cannot be
// changed unnoticed. Immutable; thread-safe.
class Seal {
 public:
  // Reads the key, or makes one where `key_file` is missing and `may_make` holds. Fails where others can read the file
  // or change it, and where it holds no key. Every failure here is state_directory_failed and names the file.
  static base::Result<Seal> open(const std::filesystem::path& key_file, bool may_make);
  Seal(const Seal&) = default;
  ~Seal();

  // Fails where the system has no random bytes.
  base::Result<std::string> close(std::string_view text) const;
  // Fails where it was closed with another key, or has been changed.
  base::Result<std::string> read(std::string_view sealed) const;

  // Whether `bytes` begin as something sealed does.
  static bool is_sealed(std::string_view bytes);

 private:
  static constexpr size_t kKeyBytes = 32;
  using Key = std::array<unsigned char, kKeyBytes>;
  Seal(std::filesystem::path key_file, const Key& key);

  std::filesystem::path key_file_;
  Key key_;
  std::string header_;  // with the key's fingerprint
};

}  // namespace thalweg::daemon
