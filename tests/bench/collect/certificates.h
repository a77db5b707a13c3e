// An authority and its certificates for one run: PEM files in a folder. Failures end the program.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>

#include "io/tls.h"

namespace culprit::bench {

class Authority {
 public:
  explicit Authority(std::string folder)
      : folder_(std::move(folder)), key_(EVP_EC_gen("P-256"), EVP_PKEY_free) {
    write("ca.pem", [&](FILE* to) { PEM_write_X509(to, sign({}, key_.get()).get()); });
  }
  // `names`: "DNS:node-3,IP:127.0.0.1".
  io::TlsFiles issue(const std::string& file, const std::string& names) const {
    const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    write(file + ".crt", [&](FILE* to) { PEM_write_X509(to, sign(names, key.get()).get()); });
    write(file + ".key",
          [&](FILE* to) { PEM_write_PrivateKey(to, key.get(), nullptr, nullptr, 0, nullptr, nullptr); });
    return {folder_ + "/" + file + ".crt", folder_ + "/" + file + ".key", folder_ + "/ca.pem"};
  }

 private:
  using Key = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;
  using Certificate = std::unique_ptr<X509, void (*)(X509*)>;

  // Without names: the certificate of the authority itself.
  Certificate sign(const std::string& names, EVP_PKEY* key) const {
    static long serial = 0;
    Certificate made(X509_new(), X509_free);
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), 86'400);
    X509_set_pubkey(made.get(), key);
    const auto call = [](X509_NAME* to, const char* name) {
      X509_NAME_add_entry_by_txt(to, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name), -1, -1,
                                 0);
    };
    call(X509_get_subject_name(made.get()), names.empty() ? "an authority" : "a host");
    call(X509_get_issuer_name(made.get()), "an authority");
    const auto extend = [&](int id, const std::string& value) {
      X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, id, value.c_str());
      X509_add_ext(made.get(), extension, -1);
      X509_EXTENSION_free(extension);
    };
    names.empty() ? extend(NID_basic_constraints, "critical,CA:TRUE") : extend(NID_subject_alt_name, names);
    X509_sign(made.get(), key_.get(), EVP_sha256());
    return made;
  }
  template <class Write>
  void write(const std::string& name, Write write_to) const {
    FILE* file = std::fopen((folder_ + "/" + name).c_str(), "w");
    if (file == nullptr) std::perror(name.c_str()), std::exit(1);
    write_to(file);
    fchmod(fileno(file), 0600);  // as private keys must be
    std::fclose(file);
  }

  const std::string folder_;
  const Key key_;
};

}  // namespace culprit::bench
