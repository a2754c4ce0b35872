#include "carbon/certified_saving.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "carbon/certificate.h"
#include "carbon/certificate_test_fixture.h"
#include "carbon/grid.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/proto/made_up.h"

namespace optrail::carbon {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

// The same work, read twice: no saving, whatever the sign of the difference.
TEST_F(CertificateTest, NoiseIsNoSaving) {
  inputs_.candidate = Record(3, {1.19, 1.2, 1.195});
  const json certificate = json::parse(Make());
  EXPECT_GT(certificate["saved_fraction"], 0);
  const json& saving = certificate["saving"];
  EXPECT_LT(saving["low"], 0);
  EXPECT_GT(saving["high"], 0);
  EXPECT_NE(saving["verdict"], "less");
  const std::string page = *CertificatePage(certificate.dump());
  EXPECT_THAT(page, Not(HasSubstr("<p>The candidate emits")));
}

// One process says nothing of scatter, as `compare` says.
TEST_F(CertificateTest, OneProcessCannotTell) {
  inputs_.base = Record(3, {1.2});
  inputs_.candidate = Record(4, {.6});
  const json certificate = json::parse(Make());
  EXPECT_EQ(certificate["saving"]["verdict"], "can't tell");
  const auto headline = HeadlineOf(certificate.dump());
  ASSERT_TRUE(headline.ok()) << headline.status();
  EXPECT_FALSE(headline->can_tell);
  EXPECT_THAT(headline->text, HasSubstr("Can't tell"));
}

TEST_F(CertificateTest, AModelDoesNotCompareDifferentHardware) {
  const auto record = [&](int day, const char* hardware) {
    proto::Run run = *history_.ReadRun(Record(day, {1, 1.01}, false));
    run.set_run_id(absl::StrCat(run.run_id(), "f"));
    run.mutable_hardware()->set_id(hardware);
    run.mutable_hardware()->set_device_kind(proto::CPU);
    run.mutable_hardware()->set_cores(2);
    EXPECT_TRUE(history_.AppendRun(run).ok());
    return run.run_id();
  };
  inputs_.base = record(3, "xeon");
  inputs_.candidate = record(4, "zen");
  const auto made = MakeCertificate(inputs_, history_);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(made.status().message()),
              HasSubstr("cannot tell different hardware apart"));
}

TEST_F(CertificateTest, MadeUpDataIsLabelled) {
  EXPECT_EQ(json::parse(Make())["made_up"], false);
  inputs_.intensity_kind = kMadeUpKind;
  const std::string of_grid = Make();
  EXPECT_EQ(json::parse(of_grid)["made_up"], true);
  EXPECT_THAT(*CertificatePage(of_grid), HasSubstr("Made-up data."));
  inputs_.intensity_kind = "average";
  proto::Run run = *history_.ReadRun(inputs_.candidate);
  run.set_run_id(absl::StrCat(run.run_id(), "f"));
  run.set_source(tracker::kMadeUpSource);
  ASSERT_TRUE(history_.AppendRun(run).ok());
  inputs_.candidate = run.run_id();
  const std::string of_run = Make();
  EXPECT_EQ(json::parse(of_run)["candidate"]["made_up"], true);
  EXPECT_THAT(*CertificatePage(of_run), HasSubstr("Made-up data."));
  EXPECT_TRUE(VerifyCertificate(of_run, history_, "").ok());
  inputs_.intensity_kind = "foo";
  EXPECT_THAT(
      std::string(MakeCertificate(inputs_, history_).status().message()),
      HasSubstr("expected average or marginal"));
}

}  // namespace
}  // namespace optrail::carbon
