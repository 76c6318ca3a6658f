// The functions whose state lies with the caller: EVP's would allocate one for each value.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/md5.h>
#include <openssl/sha.h>

#include <array>

#include "rules/evaluators.h"

namespace thalweg::rules {

namespace {

template <typename Context, auto Init, auto Update, auto Final, size_t Bytes>
struct Digest {
  static constexpr size_t kBytes = Bytes;
  static void of(std::string_view bytes, unsigned char* out) {
    Context context;
    Init(&context);
    Update(&context, bytes.data(), bytes.size());
    Final(out, &context);
  }
};
using Md5 = Digest<MD5_CTX, MD5_Init, MD5_Update, MD5_Final, MD5_DIGEST_LENGTH>;
using Sha224 = Digest<SHA256_CTX, SHA224_Init, SHA224_Update, SHA224_Final, SHA224_DIGEST_LENGTH>;
using Sha256 = Digest<SHA256_CTX, SHA256_Init, SHA256_Update, SHA256_Final, SHA256_DIGEST_LENGTH>;
using Sha384 = Digest<SHA512_CTX, SHA384_Init, SHA384_Update, SHA384_Final, SHA384_DIGEST_LENGTH>;
using Sha512 = Digest<SHA512_CTX, SHA512_Init, SHA512_Update, SHA512_Final, SHA512_DIGEST_LENGTH>;

template <typename Kind>
Failure as_bytes(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  char* const bytes = scratch.take(Kind::kBytes);
  if (bytes == nullptr) return Failure::too_large;
  Kind::of(a.text(), reinterpret_cast<unsigned char*>(bytes));
  return give_text(out, {bytes, Kind::kBytes});
}

Failure md5(Scratch& scratch, const Datum& a, const Datum&, const Datum&, Datum& out) {
  std::array<unsigned char, Md5::kBytes> sum;
  Md5::of(a.text(), sum.data());
  char* const text = scratch.take(2 * sum.size());
  if (text == nullptr) return Failure::too_large;
  size_t size = 0;
  for (const unsigned char byte : sum) {
    for (const int digit : {byte >> 4, byte & 15}) text[size++] = "0123456789abcdef"[digit];
  }
  return give_text(out, {text, size});
}

constexpr std::array kEvaluators{
    Evaluator{"md5_text", md5, Collates::nothing, true}, Evaluator{"md5_bytea", md5},
    Evaluator{"sha224_bytea", as_bytes<Sha224>},         Evaluator{"sha256_bytea", as_bytes<Sha256>},
    Evaluator{"sha384_bytea", as_bytes<Sha384>},         Evaluator{"sha512_bytea", as_bytes<Sha512>}};

}  // namespace

std::span<const Evaluator> digest_evaluators() { return kEvaluators; }

}  // namespace thalweg::rules
