// Shared by the two halves of io/tls: OpenSSL's objects, and fields of a certificate. For tls*.cc only.
#pragma once

#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <cerrno>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "io/system_error.h"
#include "io/tls.h"

namespace culprit::io {

struct X509Delete {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using X509Ptr = std::unique_ptr<X509, X509Delete>;

struct TlsCredentials::Impl {
  struct Delete {
    void operator()(SSL_CTX* owned) const { SSL_CTX_free(owned); }
  };
  TlsFiles files;
  uint64_t hash = 0;  // hash of the files' content
  std::unique_ptr<SSL_CTX, Delete> context;
  std::string subject;
  TimeNs expires_ns = kNoTime;
};

// A context configured except for certificates; null if out of memory.
SSL_CTX* new_tls_context();
// The sentence for a failed verification: whose certificate, and why.
std::string refusal_of(X509_STORE_CTX* context);
// Stores the problem of a certificate for the error of its connection.
int note_verification(int holds, X509_STORE_CTX* context);
// First DNS name, else the common name.
std::string name_of(X509* certificate);
std::vector<std::string> dns_names(X509* certificate);  // in lower case
TimeNs time_of(const ASN1_TIME* time);

}  // namespace culprit::io
