#include "daemon/identity.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/file.h"

namespace thalweg::daemon {
namespace {

using base::ErrorCode;
namespace fs = std::filesystem;

constexpr size_t kPemBytesMax = 64 * 1024;

template <auto release>
struct Release {
  template <typename T>
  void operator()(T* object) const {
    release(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Release<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Release<X509_free>>;
using Request = std::unique_ptr<X509_REQ, Release<X509_REQ_free>>;
using Store = std::unique_ptr<X509_STORE, Release<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Release<X509_STORE_CTX_free>>;
using Memory = std::unique_ptr<BIO, Release<BIO_free_all>>;

std::string library_error() {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return text.data();
}

auto refuse(std::string why) { return base::fail(ErrorCode::identity_refused, std::move(why)); }

Memory memory_of(const std::string& text) {
  return Memory(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string text_of(BIO* memory) {
  char* data = nullptr;
  const long length = BIO_get_mem_data(memory, &data);
  return std::string(data, static_cast<size_t>(length));
}

bool is_dns_label(std::string_view name) {
  if (name.empty() || name.size() > 63 || name.front() == '-' || name.back() == '-') return false;
  return std::ranges::all_of(name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

base::Result<Key> read_key(const fs::path& file) {
  THALWEG_ASSIGN(const std::string text, base::read_file(file, kPemBytesMax));
  Key key(PEM_read_bio_PrivateKey(memory_of(text).get(), nullptr, nullptr, nullptr));
  if (!key) return refuse(fmt::format("{} holds no key: {}", file.string(), library_error()));
  return key;
}

base::Result<std::string> key_text(EVP_PKEY* key) {
  Memory out(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return base::fail(ErrorCode::state_directory_failed, "A key could not be written: " + library_error());
  }
  return text_of(out.get());
}

base::Result<std::string> make_request(EVP_PKEY* key, const std::string& name) {
  Request request(X509_REQ_new());
  X509_NAME* const subject = X509_REQ_get_subject_name(request.get());
  bool made = X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                         reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0) == 1;
  const std::string alternative = "DNS:" + name;
  X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, alternative.c_str());
  STACK_OF(X509_EXTENSION)* const extensions = sk_X509_EXTENSION_new_null();
  sk_X509_EXTENSION_push(extensions, extension);
  made = made && X509_REQ_add_extensions(request.get(), extensions) == 1;
  sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
  made = made && X509_REQ_set_pubkey(request.get(), key) == 1 && X509_REQ_sign(request.get(), key, EVP_sha256()) > 0;
  Memory out(BIO_new(BIO_s_mem()));
  if (!made || PEM_write_bio_X509_REQ(out.get(), request.get()) != 1) {
    return base::fail(ErrorCode::state_directory_failed, "A certificate request could not be made: " + library_error());
  }
  return text_of(out.get());
}

base::Result<Certificate> read_certificate(const std::string& pem, std::string_view what) {
  if (pem.size() > kPemBytesMax) return refuse(fmt::format("The {} is too large", what));
  Certificate certificate(PEM_read_bio_X509(memory_of(pem).get(), nullptr, nullptr, nullptr));
  if (!certificate) return refuse(fmt::format("The {} is no PEM certificate: {}", what, library_error()));
  return certificate;
}

base::Result<void> check_signed(X509* certificate, X509* authority) {
  Store store(X509_STORE_new());
  X509_STORE_add_cert(store.get(), authority);
  StoreContext context(X509_STORE_CTX_new());
  if (X509_STORE_CTX_init(context.get(), store.get(), certificate, nullptr) != 1) return refuse(library_error());
  if (X509_verify_cert(context.get()) == 1) return {};
  ERR_clear_error();
  return refuse(fmt::format("The certificate is not valid under its CA: {}",
                            X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()))));
}

base::Result<control::IdentityView> describe(X509* certificate) {
  control::IdentityView view;
  std::array<char, 128> name{};
  if (X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(), name.size()) <= 0 ||
      X509_check_host(certificate, name.data(), 0, 0, nullptr) != 1) {
    return refuse("The certificate's name is not among its DNS names");
  }
  view.name = name.data();
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  X509_digest(certificate, EVP_sha256(), digest.data(), &length);
  for (unsigned int i = 0; i < length; ++i) view.fingerprint += fmt::format("{:02x}", digest[i]);
  tm ends{};
  ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &ends);
  view.not_after = base::UnixMicros{static_cast<int64_t>(::timegm(&ends)) * 1'000'000};
  return view;
}

base::Result<void> check_key(X509* certificate, const fs::path& file) {
  THALWEG_ASSIGN(const Key key, read_key(file));
  if (X509_check_private_key(certificate, key.get()) == 1) return {};
  ERR_clear_error();
  return refuse("The certificate does not fit the engine's key; ask for a new request");
}

}  // namespace

base::Result<std::unique_ptr<Identity>> Identity::open(fs::path folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return std::unexpected(base::file_error(error.value(), "create " + folder.string()));
  fs::permissions(folder, fs::perms::owner_all, error);
  std::unique_ptr<Identity> identity(new Identity(std::move(folder)));
  if (!fs::exists(identity->certificate_file())) return identity;
  THALWEG_ASSIGN(const std::string text, base::read_file(identity->certificate_file(), kPemBytesMax));
  auto certificate = read_certificate(text, "identity");
  auto view = certificate ? describe(certificate->get()) : std::unexpected(certificate.error());
  if (!view) {
    return base::fail(ErrorCode::state_directory_failed,
                      fmt::format("{} is damaged ({}). Move it away and enrol the engine again.",
                                  identity->certificate_file().string(), view.error().message));
  }
  identity->view_ = std::move(*view);
  return identity;
}

base::Result<std::string> Identity::request(const std::string& name) {
  if (!is_dns_label(name)) {
    return base::fail(ErrorCode::invalid_request,
                      fmt::format("/name: '{}' is not a DNS label of lower-case letters, digits and hyphens", name));
  }
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return base::fail(ErrorCode::state_directory_failed, "A key could not be made: " + library_error());
  THALWEG_ASSIGN(std::string request, make_request(key.get(), name));
  THALWEG_ASSIGN(const std::string text, key_text(key.get()));
  const std::lock_guard lock(mutex_);
  THALWEG_TRY(base::write_file_atomically(next_file(), text, 0600));
  return request;
}

base::Result<control::IdentityView> Identity::install(const std::string& certificate_text, const std::string& ca_text) {
  THALWEG_ASSIGN(const Certificate certificate, read_certificate(certificate_text, "certificate"));
  THALWEG_ASSIGN(const Certificate authority, read_certificate(ca_text, "CA"));
  THALWEG_TRY(check_signed(certificate.get(), authority.get()));
  THALWEG_ASSIGN(control::IdentityView view, describe(certificate.get()));

  const std::lock_guard lock(mutex_);
  const bool waits = fs::exists(next_file());
  if (!waits && !view_) return refuse("No key waits for a certificate; ask for a request first");
  const fs::path key_file = waits ? next_file() : certificate_file();
  THALWEG_TRY(check_key(certificate.get(), key_file));
  THALWEG_ASSIGN(const Key key, read_key(key_file));
  THALWEG_ASSIGN(const std::string text, key_text(key.get()));
  THALWEG_TRY(base::write_file_atomically(ca_file(), ca_text, 0600));
  THALWEG_TRY(base::write_file_atomically(certificate_file(), text + certificate_text, 0600));
  std::error_code ignored;  // a key that stays behind waits for nothing
  fs::remove(next_file(), ignored);
  view_ = view;
  return view;
}

std::optional<control::IdentityView> Identity::view() const {
  const std::lock_guard lock(mutex_);
  return view_;
}

}  // namespace thalweg::daemon
