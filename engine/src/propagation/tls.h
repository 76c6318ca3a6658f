#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "propagation/link.h"

// Mutual TLS 1.3 with OpenSSL. Internal to propagation/; no other component includes OpenSSL's headers.

namespace thalweg::propagation {

struct FreeSslContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};
using SslContext = std::unique_ptr<SSL_CTX, FreeSslContext>;
using Ssl = std::unique_ptr<SSL, FreeSsl>;

enum class TlsRole { client, server };

// A context for one side of connections: TLS 1.3 only, the peer must show a certificate that `files.ca` signed.
// certificate_unusable names the file and what is wrong with it.
base::Result<SslContext> make_tls_context(TlsRole role, const TlsFiles& files);

// A session over `descriptor`. The client side verifies during the handshake that the peer's certificate carries
// `peer_engine`; the server side learns the name later and asks certificate_names().
base::Result<Ssl> make_tls_session(SSL_CTX* context, TlsRole role, int descriptor, const std::string& peer_engine);

// True when the peer's certificate carries `engine` as a DNS name among its subject alternative names.
bool certificate_names(SSL* ssl, const std::string& engine);

// The error of a handshake or of a later failure, from OpenSSL's queue and the verification's result:
// certificate_rejected where certificates are the reason, else link_lost. `action`: "TLS handshake with engine b".
base::Error tls_error(SSL* ssl, std::string_view action);

}  // namespace thalweg::propagation
