// Certificates of a test, in a folder: an authority, and certificates that it signs.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "base/time.h"
#include "fixtures.h"
#include "io/tls.h"

namespace culprit::io::testing {

struct Issued {
  std::string names;  // "DNS:node-3,IP:127.0.0.1"; empty: none
  int64_t from_s = 1'700'000'000, to_s = 1'900'000'000;
  const char* common_name = "a test";
};

class Authority {
 public:
  Authority(const Folder& folder, std::string name)
      : folder_(folder), name_(std::move(name)), key_(new_key()) {
    const auto certificate = sign({"", 1'600'000'000, 2'000'000'000, "an authority"}, key_.get(), true);
    write(name_ + ".pem", [&](FILE* file) { PEM_write_X509(file, certificate.get()); });
  }
  std::string ca() const { return folder_ / (name_ + ".pem"); }
  TlsFiles issue(const std::string& file, const Issued& what) const {
    const Key key = new_key();
    const auto certificate = sign(what, key.get(), false);
    write(file + ".crt", [&](FILE* out) { PEM_write_X509(out, certificate.get()); });
    write(file + ".key",
          [&](FILE* out) { PEM_write_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
    return {folder_ / (file + ".crt"), folder_ / (file + ".key"), ca()};
  }
  // A revocation list of these certificates (of issue()), in a file of this name.
  std::string revoke(const std::string& name, const std::vector<std::string>& certificates,
                     int64_t to_s = 1'900'000'000) const {
    const std::unique_ptr<X509_CRL, void (*)(X509_CRL*)> list(X509_CRL_new(), X509_CRL_free);
    X509_CRL_set_version(list.get(), 1);
    const std::unique_ptr<X509, void (*)(X509*)> own(read(ca()), X509_free);
    X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(own.get()));
    const std::unique_ptr<ASN1_TIME, void (*)(ASN1_TIME*)> from(ASN1_TIME_set(nullptr, 1'700'000'000),
                                                                ASN1_TIME_free),
        to(ASN1_TIME_set(nullptr, to_s), ASN1_TIME_free);
    X509_CRL_set1_lastUpdate(list.get(), from.get());
    X509_CRL_set1_nextUpdate(list.get(), to.get());
    for (const std::string& path : certificates) {
      const std::unique_ptr<X509, void (*)(X509*)> one(read(path), X509_free);
      X509_REVOKED* entry = X509_REVOKED_new();
      X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(one.get()));
      X509_REVOKED_set_revocationDate(entry, from.get());
      X509_CRL_add0_revoked(list.get(), entry);
    }
    X509_CRL_sign(list.get(), key_.get(), EVP_sha256());
    write(name, [&](FILE* out) { PEM_write_X509_CRL(out, list.get()); });
    return folder_ / name;
  }
  std::shared_ptr<const TlsCredentials> load(const std::string& file, const Issued& what) const {
    auto loaded = TlsCredentials::load(issue(file, what));
    BOOST_REQUIRE_MESSAGE(loaded, (loaded ? "" : loaded.error().text));
    return *loaded;
  }

 private:
  using Key = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;
  using Certificate = std::unique_ptr<X509, void (*)(X509*)>;
  static X509* read(const std::string& path) {
    FILE* file = std::fopen(path.c_str(), "r");
    BOOST_REQUIRE(file != nullptr);
    X509* certificate = PEM_read_X509(file, nullptr, nullptr, nullptr);
    std::fclose(file);
    BOOST_REQUIRE(certificate != nullptr);
    return certificate;
  }
  static Key new_key() { return {EVP_EC_gen("P-256"), EVP_PKEY_free}; }

  Certificate sign(const Issued& what, EVP_PKEY* key, bool authority) const {
    static long serial = 0;
    Certificate made(X509_new(), X509_free);
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial);
    ASN1_TIME_set(X509_getm_notBefore(made.get()), what.from_s);
    ASN1_TIME_set(X509_getm_notAfter(made.get()), what.to_s);
    X509_set_pubkey(made.get(), key);
    const auto name_it = [](X509_NAME* to, const std::string& name) {
      X509_NAME_add_entry_by_txt(to, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()),
                                 -1, -1, 0);
    };
    name_it(X509_get_subject_name(made.get()), authority ? name_ : what.common_name);
    name_it(X509_get_issuer_name(made.get()), name_);
    const auto extend = [&](int id, const std::string& value) {
      X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, id, value.c_str());
      X509_add_ext(made.get(), extension, -1);
      X509_EXTENSION_free(extension);
    };
    if (authority) extend(NID_basic_constraints, "critical,CA:TRUE");
    if (!what.names.empty()) extend(NID_subject_alt_name, what.names);
    X509_sign(made.get(), key_.get(), EVP_sha256());
    return made;
  }
  template <class Write>
  void write(const std::string& name, Write write_to) const {
    FILE* file = std::fopen((folder_ / name).c_str(), "w");
    BOOST_REQUIRE(file != nullptr);
    write_to(file);
    fchmod(fileno(file), 0600);  // as private keys must be
    std::fclose(file);
  }

  const Folder& folder_;
  const std::string name_;
  const Key key_;
};

}  // namespace culprit::io::testing
