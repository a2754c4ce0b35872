// Certificates of a history in PostgreSQL.

#include <set>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "carbon/carbon_command.h"
#include "carbon/certificate.h"
#include "carbon/certificate_folder.h"
#include "carbon/certificate_test_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/copy.h"
#include "tracker/history/documents.h"
#include "tracker/history/postgres/schema.h"
#include "tracker/history/postgres/testing/postgres_fixture.h"
#include "tracker/history/retention.h"

namespace optrail::carbon {
namespace {

using testing::HasSubstr;

// The runs are recorded into a folder and copied into the database.
class SharedCertificatesTest : public tracker::PostgresTest {
 protected:
  class Local : public CertificateTest {
   public:
    void TestBody() override {}
    using CertificateTest::dir_;
    using CertificateTest::history_;
    using CertificateTest::inputs_;
    using CertificateTest::Make;
  };

  void SetUp() override {
    tracker::PostgresTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const auto db = tracker::Postgres::Connect(Url());
    ASSERT_TRUE(db.ok()) << db.status();
    const absl::Status made = tracker::InitHistorySchema(**db);
    ASSERT_TRUE(made.ok()) << made;
    const auto shared = tracker::History::Open(Url());
    ASSERT_TRUE(shared.ok()) << shared.status();
    const auto copied = tracker::CopyHistory(local_.history_, *shared);
    ASSERT_TRUE(copied.ok()) << copied.status();
    ASSERT_TRUE(copied->IsEqual());
  }

  Local local_;
};

TEST_F(SharedCertificatesTest, ACopyBringsThemAndTheirRunsStayWhole) {
  ASSERT_TRUE(KeepCertificate(local_.dir_, local_.Make()).ok());
  const auto report = CopyCertificates(local_.dir_, Url());
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->copied, 1);
  const auto again = CopyCertificates(local_.dir_, Url());
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->already_there, 1);

  const auto shared = *tracker::History::Open(Url());
  const auto certified = CertifiedRuns(Url());
  ASSERT_TRUE(certified.ok()) << certified.status();
  EXPECT_EQ(
      std::set<std::string>(certified->begin(), certified->end()),
      (std::set<std::string>{local_.inputs_.base, local_.inputs_.candidate}));
  tracker::RetentionPolicy policy;
  policy.keep_runs = 0;
  policy.keep_days = 0;
  policy.keep_every = 1000;
  constexpr int64_t kLater = (1767225600LL + 400 * 86400) * 1'000'000'000;
  const auto without = tracker::PlanRetention(shared, policy, kLater);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ(without->kept_whole, 0);
  policy.keep_ids = *certified;
  const auto with = tracker::PlanRetention(shared, policy, kLater);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ(with->kept_whole, 2);

  const auto checked = CheckCertificates(shared, Url());
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->verified, 1);
  // And back, into a folder, with a page.
  const std::string folder = absl::StrCat(local_.dir_, "_back");
  const auto back = CopyCertificates(Url(), folder);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->copied, 1);
  EXPECT_EQ(*ListDirectory(CertificateFolder(folder)),
            *ListDirectory(CertificateFolder(local_.dir_)));
}

TEST_F(SharedCertificatesTest, CertifyKeepsItThereAndVerifyFindsIt) {
  CarbonCertifyCommand certify;
  certify.common.history = Url();
  certify.inputs.base = local_.inputs_.base;
  certify.inputs.candidate = local_.inputs_.candidate;
  certify.grid.zone = "DE";
  certify.grid.intensity = absl::StrCat(local_.dir_, "_grid.csv");
  ASSERT_TRUE(WriteFileAtomically(certify.grid.intensity,
                                  "zone,start,end,gco2e_per_kwh,kind\n"
                                  "DE,2026-01-01T00:00:00Z,"
                                  "2026-02-01T00:00:00Z,300,average\n")
                  .ok());
  std::ostringstream out;
  const auto code = RunCarbonCertify(certify, out);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, ExitCode::kOk);
  const std::string place = out.str().substr(0, out.str().find('\n'));
  EXPECT_THAT(place, HasSubstr("/certificates/"));
  EXPECT_EQ(out.str(), place + "\n") << "a database keeps no page";

  CarbonVerifyCommand verify;
  verify.common.history = Url();
  verify.certificate = place;
  std::ostringstream said;
  const auto verified = RunCarbonVerify(verify, said);
  ASSERT_TRUE(verified.ok()) << verified.status();
  EXPECT_EQ(*verified, ExitCode::kOk) << said.str();

  // A reader gets the file, and a note that the history keeps nothing.
  certify.common.history = Url(NewRole("optrail_reader"));
  certify.inputs.pue = 1.2;
  certify.out = absl::StrCat(local_.dir_, "_reader.json");
  testing::internal::CaptureStderr();
  const auto read_only = RunCarbonCertify(certify, out);
  const std::string note = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(read_only.ok()) << read_only.status();
  EXPECT_EQ(*read_only, ExitCode::kOk);
  EXPECT_THAT(note, HasSubstr("note: the history does not keep it"));
  EXPECT_TRUE(FileExists(certify.out));
  certify.out = "";
  EXPECT_TRUE(
      absl::IsPermissionDenied(RunCarbonCertify(certify, out).status()));

  // A place in another history is named with what to do.
  verify.common.history = local_.dir_;
  EXPECT_THAT(std::string(RunCarbonVerify(verify, said).status().message()),
              HasSubstr("next: --history='postgresql://"));
}

TEST_F(SharedCertificatesTest, ADocumentNeverChanges) {
  const auto documents = tracker::OpenDocuments(Url(), "certificates");
  ASSERT_TRUE(documents.ok()) << documents.status();
  ASSERT_TRUE((*documents)->Put("one.json", "{}").ok());
  EXPECT_TRUE(absl::IsAlreadyExists((*documents)->Put("one.json", "[]")));
  EXPECT_EQ(*(*documents)->Read("one.json"), "{}");
  EXPECT_TRUE(absl::IsNotFound((*documents)->Read("two.json").status()));
  EXPECT_FALSE((*documents)->Put("../two.json", "{}").ok());
  // An unreadable one must not let its runs go.
  ASSERT_TRUE((*documents)->Put("two.json", "{").ok());
  const absl::Status unreadable = CertifiedRuns(Url()).status();
  EXPECT_FALSE(unreadable.ok());
  const std::string message(unreadable.message());
  const size_t sql = message.find("DELETE FROM optrail.documents WHERE");
  ASSERT_NE(sql, std::string::npos) << message;
  // The message's statement takes one away, and no more.
  const auto maintainer =
      tracker::Postgres::Connect(Url(NewRole("optrail_maintainer")));
  ASSERT_TRUE(maintainer.ok()) << maintainer.status();
  EXPECT_TRUE((*maintainer)->Execute(message.substr(sql).c_str()).ok())
      << message;
  EXPECT_EQ((*documents)->List()->size(), 1);
  // A recorder may add one, and not take one away.
  const std::string recorder = NewRole("optrail_recorder");
  const auto as_recorder =
      tracker::OpenDocuments(Url(recorder), "certificates");
  ASSERT_TRUE(as_recorder.ok()) << as_recorder.status();
  EXPECT_TRUE((*as_recorder)->Put("three.json", "{}").ok());
  const auto db = tracker::Postgres::Connect(Url(recorder));
  ASSERT_TRUE(db.ok()) << db.status();
  for (const char* change : {"DELETE FROM optrail.documents",
                             "UPDATE optrail.documents SET bytes = ''"}) {
    EXPECT_TRUE(absl::IsPermissionDenied((*db)->Execute(change))) << change;
  }
}

}  // namespace
}  // namespace optrail::carbon
