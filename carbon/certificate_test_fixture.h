#ifndef OPTRAIL_CARBON_CERTIFICATE_TEST_FIXTURE_H_
#define OPTRAIL_CARBON_CERTIFICATE_TEST_FIXTURE_H_

// CertificateTest has a history of two metered runs, and inputs for a
// certificate of them.

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/hash/sha256.h"
#include "carbon/certificate.h"
#include "gtest/gtest.h"
#include "tracker/history/history.h"
#include "tracker/history/history_files.h"

namespace optrail::carbon {

inline std::string Folder(const std::string& name) {
  std::string pattern = testing::TempDir() + "/" + name + "_XXXXXX";
  return mkdtemp(pattern.data());
}

inline std::string NewKey() {
  EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  char* data = nullptr;
  const auto size = BIO_get_mem_data(bio, &data);
  std::string pem(data, static_cast<size_t>(size));
  BIO_free(bio);
  EVP_PKEY_free(key);
  return pem;
}

class CertificateTest : public testing::Test {
 protected:
  CertificateTest()
      : dir_(Folder("history")), history_(*tracker::History::Open(dir_)) {
    inputs_.base = Record(1, {1.2, 1.21, 1.19});
    inputs_.candidate = Record(2, {.9, .91, .89});
    inputs_.zone = "DE";
    inputs_.intensity_kind = "average";
    inputs_.intensity_source = "made up";
    inputs_.intensity_sha256 = Sha256Hex("made up");
    inputs_.intensity = {{1767225600, 1767229200, 300},
                         {1767229200, 1767232800, 400}};
    inputs_.embodied_grams = 150'000;
    inputs_.embodied_hours = 35040;
    inputs_.embodied_source = "a data sheet";
    inputs_.issued_unix_s = 1767232800;
  }

  std::string Record(int day, const std::vector<double>& joules,
                     bool metered = true) {
    proto::Run run;
    run.set_started_unix_ns((1767225600 + day * 86400LL) * 1'000'000'000);
    run.set_elapsed_ns(60'000'000'000);
    run.set_run_id(absl::StrCat("2026010", day, "T000000Z-00000000000", day));
    run.mutable_hardware()->set_id("nvidia-h200");
    run.mutable_hardware()->set_device_kind(proto::CUDA);
    run.mutable_commit()->set_id(std::string(40, 'a' + day));
    proto::BenchmarkResult* result = run.add_results();
    result->mutable_key()->set_operator_name("BM_Product");
    result->set_outcome(proto::OK);
    for (const double one : joules) {
      proto::Measurement* process = result->add_measurements();
      process->set_median_ns(1'600'000);
      if (!metered) continue;
      proto::MeterWindow* window = process->add_windows();
      window->set_metric("joules");
      window->set_unit("J");
      window->set_value(one * 1000);
      window->set_calls(1000);
      window->set_duration_ns(1'600'000'000);
      window->set_source("NVML energy counter");
      window->set_check(proto::AGREES);
    }
    EXPECT_TRUE(history_.AppendRun(run).ok());
    return run.run_id();
  }

  std::string Make() {
    const auto certificate = MakeCertificate(inputs_, history_);
    EXPECT_TRUE(certificate.ok()) << certificate.status();
    return certificate.ok() ? *certificate : "";
  }

  std::string PathOf(const std::string& run) {
    return *tracker::PlaceOf(dir_, "runs", run);
  }

  const std::string dir_;
  const tracker::History history_;
  CertificateInputs inputs_;
};

}  // namespace optrail::carbon

#endif  // OPTRAIL_CARBON_CERTIFICATE_TEST_FIXTURE_H_
