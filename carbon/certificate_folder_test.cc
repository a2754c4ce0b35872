#include "carbon/certificate_folder.h"

#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/file/file.h"
#include "carbon/carbon_command.h"
#include "carbon/certificate.h"
#include "carbon/certificate_test_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/documents.h"
#include "tracker/history/retention.h"
#include "tracker/history/store_url.h"

namespace optrail::carbon {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// In place of a database, of which this program has none.
class InMemory : public tracker::Documents {
 public:
  static std::map<std::string, std::string> kept;
  static absl::Status reading;  // an error of each Read

  explicit InMemory(const std::string& place) : Documents(place) {}

  std::string HowToRemove(absl::string_view name) const override {
    return absl::StrCat("DELETE ", name);
  }
  absl::StatusOr<std::vector<std::string>> List() const override {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : kept) names.push_back(name);
    return names;
  }
  absl::StatusOr<std::string> Read(const std::string& name) const override {
    if (!reading.ok()) return reading;
    const auto found = kept.find(name);
    if (found == kept.end()) return absl::NotFoundError(PlaceOf(name));
    return found->second;
  }
  absl::Status Put(const std::string& name,
                   const std::string& bytes) const override {
    return kept.emplace(name, bytes).second
               ? absl::OkStatus()
               : absl::AlreadyExistsError(PlaceOf(name));
  }
};
std::map<std::string, std::string> InMemory::kept;
absl::Status InMemory::reading;

constexpr char kUrl[] = "postgresql://me:SECRET@h/d";

void UseMemory() {
  InMemory::kept.clear();
  InMemory::reading = absl::OkStatus();
  tracker::RegisterUrlDocuments(
      [](absl::string_view url, absl::string_view folder)
          -> absl::StatusOr<std::unique_ptr<tracker::Documents>> {
        return std::make_unique<InMemory>(
            absl::StrCat(tracker::ShownUrl(url), "/", folder));
      });
}

CarbonCertifyCommand Certify(const std::string& dir,
                             const CertificateInputs& inputs) {
  CarbonCertifyCommand command;
  command.common.history = dir;
  command.grid.zone = "DE";
  command.grid.intensity = JoinPath(dir, "grid.csv");
  EXPECT_TRUE(WriteFileAtomically(command.grid.intensity,
                                  "zone,start,end,gco2e_per_kwh,kind\n"
                                  "DE,2026-01-01T00:00:00Z,"
                                  "2026-02-01T00:00:00Z,300,average\n")
                  .ok());
  command.inputs.base = inputs.base;
  command.inputs.candidate = inputs.candidate;
  return command;
}

// The certificates in the folder, by their names.
std::vector<std::string> Kept(const std::string& dir) {
  std::vector<std::string> names;
  const auto files = ListDirectory(CertificateFolder(dir));
  EXPECT_TRUE(files.ok()) << files.status();
  for (const std::string& name : *files) {
    if (absl::EndsWith(name, ".json")) names.push_back(name);
  }
  return names;
}

TEST_F(CertificateTest, CertifiedRunsStayWholeWhenAHistoryIsThinned) {
  const std::string third = Record(4, {1});
  ASSERT_TRUE(CreateDirectories(CertificateFolder(dir_)).ok());
  const std::string path = CertificateFolder(dir_) + "/one.json";
  ASSERT_TRUE(WriteFileAtomically(path, Make()).ok());
  ASSERT_TRUE(
      WriteFileAtomically(CertificateFolder(dir_) + "/._one.json", "x").ok());
  const auto certified = CertifiedRuns(dir_);
  ASSERT_TRUE(certified.ok()) << certified.status();
  EXPECT_EQ(std::set<std::string>(certified->begin(), certified->end()),
            (std::set<std::string>{inputs_.base, inputs_.candidate}));
  tracker::RetentionPolicy policy;
  policy.keep_runs = 0;
  policy.keep_days = 0;
  policy.keep_every = 1000;
  policy.keep_ids = *certified;
  const auto plan = tracker::PlanRetention(
      history_, policy, (1767225600LL + 400 * 86400) * 1'000'000'000);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->kept_whole, 2);
  // Those of one candidate against several bases stand side by side, and a copy
  // elsewhere is kept here, too.
  ASSERT_TRUE(RemoveFile(path).ok());
  CarbonCertifyCommand command = Certify(dir_, inputs_);
  command.out = JoinPath(dir_, "copy.json");
  for (const std::string& base : {inputs_.base, third}) {
    command.inputs.base = base;
    std::ostringstream out;
    const auto code = RunCarbonCertify(command, out);
    ASSERT_TRUE(code.ok()) << code.status();
    EXPECT_THAT(out.str(), HasSubstr(base)) << "where it is kept";
  }
  const auto kept = CertifiedRuns(dir_);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(std::set<std::string>(kept->begin(), kept->end()),
            (std::set<std::string>{inputs_.base, inputs_.candidate, third}));
  EXPECT_EQ(kept->size(), 4);
  const auto copy = ReadFile(command.out);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_TRUE(VerifyCertificate(*copy, history_, "").ok());
  // An unreadable one must not let its runs go.
  ASSERT_TRUE(WriteFileAtomically(path, "{").ok());
  EXPECT_FALSE(CertifiedRuns(dir_).ok());
}

TEST_F(CertificateTest, WhatNobodyKnowsIsNoWrongUse) {
  CarbonCertifyCommand command = Certify(dir_, inputs_);
  command.inputs.candidate = Record(4, {1, 1}, /*metered=*/false);
  std::ostringstream out;
  auto code = RunCarbonCertify(command, out);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, ExitCode::kNotEnoughData);
  EXPECT_EQ(out.str(), "");
  EXPECT_FALSE(FileExists(CertificateFolder(dir_)));
  command.inputs.filter = "nothing";
  EXPECT_FALSE(RunCarbonCertify(command, out).ok());
}

TEST_F(CertificateTest, AnotherCertificateOfAPairStandsBesideTheFirst) {
  CarbonCertifyCommand command = Certify(dir_, inputs_);
  command.key = JoinPath(dir_, "key.pem");
  ASSERT_TRUE(WriteFileAtomically(command.key, NewKey()).ok());
  std::ostringstream out;
  auto code = RunCarbonCertify(command, out);
  ASSERT_TRUE(code.ok()) << code.status();
  ASSERT_EQ(Kept(dir_).size(), 1);
  const std::string path = JoinPath(CertificateFolder(dir_), Kept(dir_)[0]);
  EXPECT_THAT(out.str(), HasSubstr(path));
  EXPECT_TRUE(FileExists(PagePathOf(path)));
  const std::string with_signature = *ReadFile(path);
  EXPECT_THAT(with_signature, HasSubstr("Ed25519"));
  command.key = "";
  code = RunCarbonCertify(command, out);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(Kept(dir_).size(), 2);
  EXPECT_EQ(*ReadFile(path), with_signature);
  // The same bytes again are no news.
  const auto again = KeepCertificate(dir_, with_signature);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, path);
  EXPECT_EQ(Kept(dir_).size(), 2);
  // A file that was changed is not put right silently.
  ASSERT_TRUE(WriteFileAtomically(path, with_signature + " ").ok());
  const absl::Status changed = KeepCertificate(dir_, with_signature).status();
  EXPECT_TRUE(absl::IsAlreadyExists(changed)) << changed;
  EXPECT_THAT(std::string(changed.message()),
              AllOf(HasSubstr(path), HasSubstr("next: optrail carbon verify")));
  EXPECT_EQ(*ReadFile(path), with_signature + " ");
}

TEST_F(CertificateTest, IdsOfACertificateMakeNoPath) {
  const std::string json =
      absl::StrReplaceAll(Make(), {{inputs_.base, "../../elsewhere"}});
  EXPECT_FALSE(KeepCertificate(dir_, json).ok());
}

TEST_F(CertificateTest, OneOfAnOlderFormatIsNamedAsSuchAndCountedApart) {
  const std::string older = absl::StrReplaceAll(
      Make(),
      {{"optrail-carbon-certificate/5", "optrail-carbon-certificate/1"}});
  EXPECT_TRUE(IsOfOlderFormat(older));
  EXPECT_FALSE(IsOfOlderFormat(Make()));
  const absl::Status refused = VerifyCertificate(older, history_, "");
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(
      std::string(refused.message()),
      AllOf(HasSubstr("an older Optrail wrote it, in format 1"),
            HasSubstr(absl::StrCat("next: optrail carbon certify ",
                                   inputs_.base, " ", inputs_.candidate))));
  const std::string newer = absl::StrReplaceAll(
      Make(),
      {{"optrail-carbon-certificate/5", "optrail-carbon-certificate/12"}});
  EXPECT_FALSE(IsOfOlderFormat(newer));
  EXPECT_THAT(std::string(VerifyCertificate(newer, history_, "").message()),
              HasSubstr("a newer Optrail wrote it"));
  const std::string folder = CertificateFolder(dir_);
  ASSERT_TRUE(KeepCertificate(dir_, Make()).ok());
  // The name that format 1 had.
  ASSERT_TRUE(WriteFileAtomically(
                  JoinPath(folder, absl::StrCat(inputs_.candidate, "_against_",
                                                inputs_.base, ".json")),
                  older)
                  .ok());
  ASSERT_TRUE(WriteFileAtomically(JoinPath(folder, "z.json"), "{}").ok());
  const auto checked = CheckCertificates(history_, dir_);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->verified, 1);
  EXPECT_EQ(checked->older, 1);
  EXPECT_EQ(checked->refused, 1);
  CarbonIndicesCommand command;
  command.common.history = dir_;
  command.common.format = OutputFormat::kCsv;
  std::ostringstream out;
  const auto code = RunCarbonIndices(command, out);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_THAT(out.str(), HasSubstr("verified certificates,1,,"));
  EXPECT_THAT(out.str(), HasSubstr("1 of an older format left out; next: "
                                   "optrail carbon certify"));
  EXPECT_THAT(out.str(), HasSubstr("1 refused; next: optrail carbon verify " +
                                   JoinPath(folder, "z.json")));
}

TEST_F(CertificateTest, ADashIsTheStandardOutputAndNoFile) {
  CarbonCertifyCommand command = Certify(dir_, inputs_);
  command.out = "-";
  std::ostringstream out;
  testing::internal::CaptureStderr();
  const auto code = RunCarbonCertify(command, out);
  const std::string errors = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(code.ok()) << code.status();
  // The JSON alone, as the history has it.
  const absl::Status verified = VerifyCertificate(out.str(), history_, "");
  EXPECT_TRUE(verified.ok()) << verified;
  ASSERT_EQ(Kept(dir_).size(), 1);
  EXPECT_THAT(errors, HasSubstr(Kept(dir_)[0]));
  EXPECT_FALSE(FileExists("-"));
  EXPECT_FALSE(FileExists("-.html"));
  CarbonPlanCommand plan;
  plan.out = "-";
  EXPECT_THAT(std::string(RunCarbonPlan(plan, out).status().message()),
              HasSubstr("expected a path"));
}

TEST_F(CertificateTest, AMergeBringsWhatKeepsItsRunsWhole) {
  const std::string folder = CertificateFolder(dir_);
  const std::string kept = *KeepCertificate(dir_, Make());
  inputs_.pue = 1.2;
  const std::string second = Make();
  ASSERT_TRUE(WriteFileAtomically(JoinPath(folder, "old.json"), second).ok());
  ASSERT_TRUE(WriteFileAtomically(JoinPath(folder, "broken.json"), "{").ok());
  ASSERT_TRUE(WriteFileAtomically(PagePathOf(kept), "<script>").ok());

  const std::string other = Folder("other");
  const auto to = *tracker::History::Open(other);
  ASSERT_TRUE(to.MergeFrom(history_).ok());
  // Another certificate has the same name there, as two may of an older
  // Optrail.
  const std::string taken = JoinPath(CertificateFolder(other), "old.json");
  ASSERT_TRUE(CreateDirectories(CertificateFolder(other)).ok());
  inputs_.pue = 1.3;
  ASSERT_TRUE(WriteFileAtomically(taken, Make()).ok());

  const auto report = CopyCertificates(dir_, other);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->copied, 2);
  EXPECT_EQ(report->already_there, 0);
  ASSERT_EQ(report->problems.size(), 1);
  EXPECT_THAT(report->problems[0], HasSubstr("broken.json"));
  EXPECT_EQ(*ReadFile(taken), Make());
  EXPECT_EQ(Kept(other).size(), 3);
  const auto checked = CheckCertificates(to, other);
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(checked->verified, 3);
  const auto runs = CertifiedRuns(other);
  ASSERT_TRUE(runs.ok()) << runs.status();
  EXPECT_EQ(std::set<std::string>(runs->begin(), runs->end()),
            (std::set<std::string>{inputs_.base, inputs_.candidate}));
  // The page is that of the JSON, whatever lay beside it.
  const std::string copy = JoinPath(CertificateFolder(other), FileNameOf(kept));
  EXPECT_EQ(*ReadFile(copy), *ReadFile(kept));
  EXPECT_EQ(*ReadFile(PagePathOf(copy)), *CertificatePage(*ReadFile(kept)));

  const auto again = CopyCertificates(dir_, other);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->copied, 0);
  EXPECT_EQ(again->already_there, 2);
  EXPECT_EQ(Kept(other).size(), 3);
  // An empty history has none.
  const auto none = CopyCertificates(Folder("empty"), other);
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(none->copied + none->already_there, 0);
}

TEST_F(CertificateTest, APlaceInADatabaseIsFoundByEveryUserAndShowsNoPassword) {
  UseMemory();
  const auto place = KeepCertificate(kUrl, Make());
  ASSERT_TRUE(place.ok()) << place.status();
  const std::string name(FileNameOf(*place));
  EXPECT_EQ(*place, absl::StrCat("postgresql://me@h/d/certificates/", name));
  for (const char* user : {"me@", "you@", "me:SECRET@", ""}) {
    const auto found = ReadCertificate(
        kUrl, absl::StrCat("postgresql://", user, "h/d/certificates/", name));
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(*found, Make());
  }
  for (const std::string& history : {dir_, std::string(kUrl)}) {
    for (const char* database :
         {"postgresql://you:SECRET@h/e", "postgresql://h/e?password=SECRET"}) {
      const absl::Status other =
          ReadCertificate(history,
                          absl::StrCat(database, "/certificates/one.json"))
              .status();
      EXPECT_TRUE(absl::IsInvalidArgument(other)) << other;
      EXPECT_THAT(std::string(other.message()),
                  AllOf(HasSubstr("next: --history="), HasSubstr("h/e"),
                        Not(HasSubstr("SECRET"))));
    }
  }
}

TEST_F(CertificateTest, ADatabaseThatIsAwayRefusesNoCertificate) {
  UseMemory();
  ASSERT_TRUE(KeepCertificate(kUrl, Make()).ok());
  InMemory::reading = absl::UnavailableError("away");
  EXPECT_TRUE(absl::IsUnavailable(CheckCertificates(history_, kUrl).status()));
  EXPECT_TRUE(
      absl::IsUnavailable(CopyCertificates(kUrl, Folder("to")).status()));
  // Nobody knows whether it is the same.
  EXPECT_TRUE(absl::IsUnavailable(KeepCertificate(kUrl, Make()).status()));
  UseMemory();
  InMemory::kept["broken.json"] = "{}";
  EXPECT_THAT(std::string(CertifiedRuns(kUrl).status().message()),
              HasSubstr("or DELETE broken.json"));
}

}  // namespace
}  // namespace optrail::carbon
