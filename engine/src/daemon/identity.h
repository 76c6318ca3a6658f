#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/error.h"
#include "control/managed_streams.h"

// This engine's identity to other engines: a key that never leaves it, and a certificate that the control plane signed.

namespace thalweg::daemon {

// Thread-safe. Files in its folder, mode 0600: identity.pem (key, then certificate), ca.pem, and identity.next.pem
// while a new key waits for its certificate.
class Identity {
 public:
  // A folder that holds no identity is fine. Fails with a file's error, or state_directory_failed for a damaged one.
  static base::Result<std::unique_ptr<Identity>> open(std::filesystem::path folder);

  // A new P-256 key and the PEM request (PKCS #10, RFC 2986) for its certificate. A later request replaces the key
  // that waits. `name`: a DNS label. Fails with invalid_request.
  base::Result<std::string> request(const std::string& name);
  // Takes the certificate for the key that waits, or a new one for the key in use. Fails with identity_refused.
  base::Result<control::IdentityView> install(const std::string& certificate, const std::string& ca);

  std::optional<control::IdentityView> view() const;
  // PEM files for TLS; they exist while view() gives something.
  std::filesystem::path certificate_file() const { return folder_ / "identity.pem"; }
  std::filesystem::path key_file() const { return folder_ / "identity.pem"; }
  std::filesystem::path ca_file() const { return folder_ / "ca.pem"; }

 private:
  explicit Identity(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path next_file() const { return folder_ / "identity.next.pem"; }

  const std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::optional<control::IdentityView> view_;
};

}  // namespace thalweg::daemon
