#include "runtime/sys/hash.h"

// The one-shot-context functions are marked deprecated in OpenSSL 3 in favour of EVP. EVP fetches
// its algorithm from a provider: 40 us at first use and two allocations for each stream, which is
// most of what a small call costs. These compute the same digest on the stack.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace pyplaypen::sys {

struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) { SHA256_Init(&state_->context); }
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::string_view bytes) {
  SHA256_Update(&state_->context, bytes.data(), bytes.size());
}

std::string Sha256::hex() const {
  SHA256_CTX copy = state_->context;
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256_Final(digest, &copy);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(sizeof digest * 2);
  for (const unsigned char byte : digest) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

}  // namespace pyplaypen::sys
