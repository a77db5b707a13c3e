#include "respond/checkpoint/digest.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace culprit::respond::checkpoint {

void Sha256::Free::operator()(evp_md_ctx_st* context) const { EVP_MD_CTX_free(context); }

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  CULPRIT_CHECK(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
}

void Sha256::add(std::string_view bytes) {
  CULPRIT_CHECK(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

copies::Digest Sha256::finish() {
  copies::Digest out{};
  unsigned size = out.size();
  CULPRIT_CHECK(EVP_DigestFinal_ex(context_.get(), out.data(), &size) == 1 && size == out.size());
  CULPRIT_CHECK(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  return out;
}

copies::Digest sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

}  // namespace culprit::respond::checkpoint
