#include "lockstep/base/hash.h"

#include <openssl/evp.h>

#include <array>

#include "lockstep/base/error.h"

namespace lockstep {

struct Sha256::Context {
  EVP_MD_CTX* digest = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(digest); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  if (EVP_DigestInit_ex(context_->digest, EVP_sha256(), nullptr) != 1) throw BugError("OpenSSL has no SHA-256");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(const void* data, size_t bytes) {
  if (EVP_DigestUpdate(context_->digest, data, bytes) != 1) throw BugError("OpenSSL's SHA-256 failed");
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  if (EVP_DigestFinal_ex(context_->digest, digest.data(), nullptr) != 1) throw BugError("OpenSSL's SHA-256 failed");
  std::string text;
  for (const unsigned char byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

}  // namespace lockstep
