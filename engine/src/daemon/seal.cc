#include "daemon/seal.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/file.h"

namespace thalweg::daemon {
namespace {

using base::ErrorCode;
using base::Result;

// A line of text that names format and key, then nonce, tag and ciphertext as bytes. The line is authenticated too.
constexpr std::string_view kMagic = "thalweg-sealed 1 ";
constexpr size_t kFingerprintDigits = 16;
constexpr size_t kHeaderBytes = kMagic.size() + kFingerprintDigits + 1;
constexpr size_t kNonceBytes = 12;
constexpr size_t kTagBytes = 16;
constexpr size_t kKeyFileBytesMax = 4096;

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, FreeContext>;

unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }
const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

auto failed(std::string why) { return base::fail(ErrorCode::state_directory_failed, std::move(why)); }

std::string hex(const unsigned char* bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

int value_of(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

}  // namespace

Seal::Seal(std::filesystem::path key_file, const Key& key) : key_file_(std::move(key_file)), key_(key) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(key_.data(), key_.size(), digest.data());
  header_ = fmt::format("{}{}\n", kMagic, hex(digest.data(), kFingerprintDigits / 2));
}

Seal::~Seal() { OPENSSL_cleanse(key_.data(), key_.size()); }

Result<Seal> Seal::open(const std::filesystem::path& key_file, bool may_make) {
  Key key{};
  struct stat info{};
  if (::stat(key_file.c_str(), &info) != 0) {
    if (errno != ENOENT) return std::unexpected(base::file_error(errno, "find the key " + key_file.string()));
    if (!may_make) {
      return failed(fmt::format(
          "The key {} is missing, and the desired state is encrypted with it: put the key back, or name its place with "
          "--key-file",
          key_file.string()));
    }
    if (RAND_bytes(key.data(), key.size()) != 1) return failed("The system gave no random bytes for a key");
    THALWEG_TRY(
        base::write_file_atomically(std::filesystem::absolute(key_file), hex(key.data(), key.size()) + "\n", 0600));
    return Seal(key_file, key);
  }
  // The group may read: so come credentials of systemd.
  if ((info.st_mode & (S_IWGRP | S_IRWXO)) != 0) {
    return failed(fmt::format("The key {} can be read or changed by others; run chmod 600", key_file.string()));
  }
  THALWEG_ASSIGN(std::string text, base::read_file(key_file, kKeyFileBytesMax));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  bool is_key = text.size() == 2 * kKeyBytes;
  for (size_t i = 0; is_key && i < kKeyBytes; ++i) {
    const int high = value_of(text[2 * i]);
    const int low = value_of(text[2 * i + 1]);
    is_key = high >= 0 && low >= 0;
    key[i] = static_cast<unsigned char>(high * 16 + low);
  }
  OPENSSL_cleanse(text.data(), text.size());
  if (!is_key) {
    return failed(
        fmt::format("{} holds no key: {} hexadecimal digits in small letters, as 'openssl rand -hex {}' makes",
                    key_file.string(), 2 * kKeyBytes, kKeyBytes));
  }
  return Seal(key_file, key);
}

bool Seal::is_sealed(std::string_view bytes) { return bytes.starts_with(kMagic); }

Result<std::string> Seal::close(std::string_view text) const {
  std::string out = header_;
  out.resize(kHeaderBytes + kNonceBytes + kTagBytes + text.size());
  unsigned char* const nonce = bytes_of(out) + kHeaderBytes;
  unsigned char* const tag = nonce + kNonceBytes;
  unsigned char* const sealed = tag + kTagBytes;
  if (RAND_bytes(nonce, kNonceBytes) != 1) return failed("The system gave no random bytes to encrypt with");
  const Context context(EVP_CIPHER_CTX_new());
  int written = 0;
  const bool done =
      context && EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.data(), nonce) == 1 &&
      EVP_EncryptUpdate(context.get(), nullptr, &written, bytes_of(header_), static_cast<int>(header_.size())) == 1 &&
      EVP_EncryptUpdate(context.get(), sealed, &written, bytes_of(text), static_cast<int>(text.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), sealed + written, &written) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, tag) == 1;
  if (!done) return failed("The desired state could not be encrypted");
  return out;
}

Result<std::string> Seal::read(std::string_view sealed) const {
  if (sealed.size() < kHeaderBytes + kNonceBytes + kTagBytes) return failed("it is cut off");
  const std::string_view header = sealed.substr(0, kHeaderBytes);
  if (header != header_) {
    return failed(fmt::format("it was encrypted with key {}, and {} holds another, {}: put that key back",
                              header.substr(kMagic.size(), kFingerprintDigits), key_file_.string(),
                              std::string_view(header_).substr(kMagic.size(), kFingerprintDigits)));
  }
  const unsigned char* const nonce = bytes_of(sealed) + kHeaderBytes;
  std::string tag(sealed.substr(kHeaderBytes + kNonceBytes, kTagBytes));
  const std::string_view body = sealed.substr(kHeaderBytes + kNonceBytes + kTagBytes);
  std::string text(body.size(), '\0');
  const Context context(EVP_CIPHER_CTX_new());
  int written = 0;
  const bool done =
      context && EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.data(), nonce) == 1 &&
      EVP_DecryptUpdate(context.get(), nullptr, &written, bytes_of(header), static_cast<int>(header.size())) == 1 &&
      EVP_DecryptUpdate(context.get(), bytes_of(text), &written, bytes_of(body), static_cast<int>(body.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) == 1 &&
      EVP_DecryptFinal_ex(context.get(), bytes_of(text) + written, &written) == 1;
  if (!done) return failed("it has been changed since the engine wrote it");
  return text;
}

}  // namespace thalweg::daemon
