#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "propagation/link.h"

// A certificate authority of a test's own.

namespace thalweg::propagation {

// Makes CAs and certificates as PEM files in a directory that goes with it. Owner: one thread.
class TestCertificates {
 public:
  TestCertificates() {
    std::string pattern = (std::filesystem::temp_directory_path() / "thalweg-propagation-XXXXXX").string();
    directory_ = mkdtemp(pattern.data());
    ca_ = make_ca("ca");
  }
  ~TestCertificates() { std::filesystem::remove_all(directory_); }
  TestCertificates(const TestCertificates&) = delete;
  TestCertificates& operator=(const TestCertificates&) = delete;

  // Certificate of `engine`, valid from an hour ago for `seconds` from now (negative: expired).
  TlsFiles issue(const std::string& engine, long seconds = 3600) { return issue(engine, seconds, ca_, "ca"); }
  // Files from another CA, which trusts itself only.
  TlsFiles issue_by_stranger(const std::string& engine) {
    const auto stranger = make_ca("stranger");
    return issue("stranger-" + engine, 3600, stranger, "stranger", engine);
  }
  std::filesystem::path directory() const { return directory_; }

 private:
  using Key = std::shared_ptr<EVP_PKEY>;
  using Certificate = std::shared_ptr<X509>;
  struct Authority {
    Key key;
    Certificate certificate;
  };

  static Certificate make(const std::string& name, const Key& key, long seconds) {
    Certificate certificate(X509_new(), X509_free);
    X509_set_version(certificate.get(), 2);
    static long serial = 1;
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -7200);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), seconds);
    X509_set_pubkey(certificate.get(), key.get());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    return certificate;
  }
  static void extend(X509* certificate, int kind, const std::string& value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
    ASSERT_NE(extension, nullptr);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }
  void write(const std::string& name, const Certificate& certificate, const Key& key) const {
    FILE* file = std::fopen((directory_ / (name + ".crt")).c_str(), "w");
    PEM_write_X509(file, certificate.get());
    std::fclose(file);
    file = std::fopen((directory_ / (name + ".key")).c_str(), "w");
    PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
  }
  Authority make_ca(const std::string& name) const {
    const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    Certificate certificate = make(name, key, 3600);
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get()));
    extend(certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
    X509_sign(certificate.get(), key.get(), EVP_sha256());
    write(name, certificate, key);
    return {key, certificate};
  }
  TlsFiles issue(const std::string& file, long seconds, const Authority& by, const std::string& ca,
                 std::string san = {}) {
    const Key key(EVP_EC_gen("P-256"), EVP_PKEY_free);
    Certificate certificate = make(file, key, seconds);
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(by.certificate.get()));
    extend(certificate.get(), NID_subject_alt_name, "DNS:" + (san.empty() ? file : san));
    X509_sign(certificate.get(), by.key.get(), EVP_sha256());
    write(file, certificate, key);
    return {.ca = directory_ / (ca + ".crt"),
            .certificate = directory_ / (file + ".crt"),
            .key = directory_ / (file + ".key")};
  }

  std::filesystem::path directory_;
  Authority ca_;
};

}  // namespace thalweg::propagation
