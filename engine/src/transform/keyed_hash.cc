#include "transform/keyed_hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <new>

#include <fmt/format.h>

#include "transform/characters.h"

namespace thalweg::transform {
namespace {

constexpr size_t kBlockBytes = 64;  // of SHA-256
constexpr size_t kDigestBytes = 32;
constexpr uint8_t kInner = 0x36;  // RFC 2104
constexpr uint8_t kOuter = 0x5c;

using Block = std::array<uint8_t, kBlockBytes>;
using Digest = std::array<uint8_t, kDigestBytes>;

struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

std::string_view text_of(const auto& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// SHA-256 of parts, one after the other.
class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {}

  Digest of(std::initializer_list<std::string_view> parts) {
    Digest digest{};
    const auto take = [&](std::string_view part) {
      return EVP_DigestUpdate(context_.get(), part.data(), part.size()) == 1;
    };
    const bool done = context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1 &&
                      std::ranges::all_of(parts, take) &&
                      EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr) == 1;
    if (!done) throw std::bad_alloc();  // nothing else can fail there
    return digest;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, FreeDigest> context_;
};

Block pad(std::string_view key, uint8_t with) {
  Digest digest{};
  if (key.size() > kBlockBytes) {
    digest = Sha256().of({key});
    key = text_of(digest);
  }
  Block block{};
  std::ranges::copy(key, block.begin());
  for (uint8_t& byte : block) byte ^= with;
  OPENSSL_cleanse(digest.data(), digest.size());
  return block;
}

std::string hex(const Block& block) {
  std::string text;
  for (const uint8_t byte : block) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace

struct KeyedHash::Context {
  explicit Context(std::string_view key) : inner(pad(key, kInner)), outer(pad(key, kOuter)) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() {
    OPENSSL_cleanse(inner.data(), inner.size());
    OPENSSL_cleanse(outer.data(), outer.size());
  }
  Digest hmac(std::string_view prefix, std::string_view text) {
    const Digest digest = sha256.of({text_of(inner), prefix, text});
    return sha256.of({text_of(outer), text_of(digest)});
  }

  Block inner, outer;
  Sha256 sha256;
};

KeyedHash::KeyedHash(std::string_view key) : context_(std::make_unique<Context>(key)) {}
KeyedHash::KeyedHash(KeyedHash&&) noexcept = default;
KeyedHash& KeyedHash::operator=(KeyedHash&&) noexcept = default;
KeyedHash::~KeyedHash() = default;

void KeyedHash::write(std::string_view text, size_t digits, std::string& out) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const Digest digest = context_->hmac({}, text);
  out.clear();
  for (const uint8_t byte : digest) {
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 0xFU];
  }
  out.resize(std::min(digits, out.size()));
}

void KeyedHash::replace_digits(std::string_view text, std::string& out) {
  const Digest digest = context_->hmac(kDigitsPrefix, text);
  out = text;
  size_t character = 0;
  for (char& byte : out) {
    if (begins_character(byte)) ++character;
    if (byte >= '0' && byte <= '9') byte = static_cast<char>('0' + digest[(character - 1) % kDigestBytes] % 10);
  }
}

std::string session_settings(std::string_view key) {
  return fmt::format("-c {}={} -c {}={}", kInnerPadSetting, hex(pad(key, kInner)), kOuterPadSetting,
                     hex(pad(key, kOuter)));
}

}  // namespace thalweg::transform
