#include "propagation/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <system_error>

namespace thalweg::propagation {

namespace {

using base::ErrorCode;

std::string take_openssl_reason() {
  const unsigned long code = ERR_peek_error();
  std::string reason;
  if (code != 0) {
    const char* text = ERR_reason_error_string(code);
    reason = text != nullptr ? text : fmt::format("OpenSSL error {:x}", code);
  }
  ERR_clear_error();
  return reason;
}

std::unexpected<base::Error> unusable(const std::filesystem::path& file, std::string_view what) {
  return base::fail(ErrorCode::certificate_unusable,
                    fmt::format("{} {}: {}", what, file.string(), take_openssl_reason()));
}

// Alerts by which the peer says that it does not like our certificate.
bool is_certificate_alert(unsigned long code) {
  if (ERR_GET_LIB(code) != ERR_LIB_SSL) return false;
  switch (ERR_GET_REASON(code)) {
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
      return true;
    default:
      return false;
  }
}

bool is_plain_peer(unsigned long code) {
  if (ERR_GET_LIB(code) != ERR_LIB_SSL) return false;
  const int reason = ERR_GET_REASON(code);
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST || reason == SSL_R_BAD_RECORD_TYPE ||
         reason == SSL_R_PACKET_LENGTH_TOO_LONG || reason == SSL_R_RECORD_LENGTH_MISMATCH;
}

}  // namespace

base::Result<SslContext> make_tls_context(TlsRole role, const TlsFiles& files) {
  ERR_clear_error();
  SslContext context(SSL_CTX_new(role == TlsRole::client ? TLS_client_method() : TLS_server_method()));
  if (!context) return base::fail(ErrorCode::certificate_unusable, "OpenSSL: " + take_openssl_reason());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  // Nothing is resumed: a link lives for days, and a ticket would outlive a certificate.
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context.get(), 1);  // one read(2) for several records
  SSL_CTX_set_default_read_buffer_len(context.get(), 256 * 1024);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  if (SSL_CTX_load_verify_file(context.get(), files.ca.c_str()) != 1) return unusable(files.ca, "CA certificate");
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1) {
    return unusable(files.certificate, "certificate");
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return unusable(files.key, "private key");
  }
  if (SSL_CTX_check_private_key(context.get()) != 1) return unusable(files.key, "private key");
  return context;
}

base::Result<Ssl> make_tls_session(SSL_CTX* context, TlsRole role, int descriptor, const std::string& peer_engine) {
  ERR_clear_error();
  Ssl ssl(SSL_new(context));
  if (!ssl || SSL_set_fd(ssl.get(), descriptor) != 1) {
    return base::fail(ErrorCode::link_lost, "OpenSSL: " + take_openssl_reason());
  }
  if (role == TlsRole::client) {
    SSL_set_hostflags(ssl.get(), X509_CHECK_FLAG_NO_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    if (SSL_set1_host(ssl.get(), peer_engine.c_str()) != 1) {
      return base::fail(ErrorCode::link_lost, "OpenSSL: " + take_openssl_reason());
    }
    SSL_set_connect_state(ssl.get());
  } else {
    SSL_set_accept_state(ssl.get());
  }
  return ssl;
}

bool certificate_names(SSL* ssl, const std::string& engine) {
  X509* certificate = SSL_get0_peer_certificate(ssl);
  return certificate != nullptr && !engine.empty() &&
         X509_check_host(certificate, engine.data(), engine.size(),
                         X509_CHECK_FLAG_NO_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr) == 1;
}

base::Error tls_error(SSL* ssl, std::string_view action) {
  const int system_error = errno;
  const unsigned long code = ERR_peek_error();
  const long verification = SSL_get_verify_result(ssl);
  std::string reason;
  ErrorCode error = ErrorCode::link_lost;
  if (verification != X509_V_OK) {
    error = ErrorCode::certificate_rejected;
    reason = fmt::format("the peer's certificate: {}", X509_verify_cert_error_string(verification));
    ERR_clear_error();
  } else if (code != 0) {
    if (is_certificate_alert(code)) error = ErrorCode::certificate_rejected;
    reason =
        is_plain_peer(code) ? "the peer does not speak TLS (" + take_openssl_reason() + ")" : take_openssl_reason();
  } else {
    reason = system_error != 0 ? std::generic_category().message(system_error) : "the peer closed the connection";
  }
  return base::Error{.code = error,
                     .message = fmt::format("{}: {}", action, reason),
                     .sqlstate = {},
                     .table = {},
                     .lsn = {},
                     .xid = {}};
}

}  // namespace thalweg::propagation
