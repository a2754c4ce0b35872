#include "suites/bench/bench_journal.h"

#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace optrail::suites {
namespace {

using ::testing::IsNull;
using ::testing::NotNull;

class BenchJournalTest : public ::testing::Test {
 protected:
  BenchJournalTest()
      : folder_(absl::StrCat(
            ::testing::TempDir(), "/",
            ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    header_.set_run_id("first");
    header_.set_started_unix_ns(1'800'000'000'000'000'000);
  }

  std::unique_ptr<BenchJournal> Open(const std::string& identity, bool resume) {
    auto journal = BenchJournal::Open(folder_, identity, header_, resume);
    EXPECT_TRUE(journal.ok()) << journal.status();
    return *std::move(journal);
  }

  static proto::BenchJournalRecord::Readings Round(int round) {
    proto::BenchJournalRecord::Readings readings;
    readings.set_round(round);
    readings.set_elapsed_ns(100 * round);
    for (const int benchmark : {0, 2}) {
      auto& reading = *readings.add_readings();
      reading.set_benchmark(benchmark);
      reading.mutable_measurement()->set_median_ns(round);
    }
    return readings;
  }

  const std::string folder_;
  proto::BenchJournalRecord::Header header_;
};

TEST_F(BenchJournalTest, KeepsWholeGroupsUntilItIsRemoved) {
  {
    const auto journal = Open("x", /*resume=*/false);
    EXPECT_THAT(journal->Find(1, {0, 2}), IsNull());
    ASSERT_TRUE(journal->Keep(Round(1)).ok());
    ASSERT_TRUE(journal->Keep(Round(2)).ok());
  }
  header_.set_run_id("second");
  {
    const auto journal = Open("x", /*resume=*/true);
    EXPECT_EQ(journal->header().run_id(), "first");
    EXPECT_EQ(journal->found(), 4);
    EXPECT_EQ(journal->elapsed_ns(), 200);
    ASSERT_THAT(journal->Find(2, {0, 2}), NotNull());
    EXPECT_EQ(journal->Find(2, {0, 2})->readings(1).measurement().median_ns(),
              2);
    EXPECT_THAT(journal->Find(2, {0}), IsNull());
    EXPECT_THAT(journal->Find(3, {0, 2}), IsNull());
    ASSERT_TRUE(journal->Remove().ok());
  }
  EXPECT_EQ(Open("x", /*resume=*/true)->found(), 0);
}

TEST_F(BenchJournalTest, BeginsAnewWithoutResume) {
  ASSERT_TRUE(Open("x", /*resume=*/false)->Keep(Round(1)).ok());
  header_.set_run_id("second");
  {
    const auto journal = Open("x", /*resume=*/false);
    EXPECT_EQ(journal->found(), 2) << "to be said";
    EXPECT_EQ(journal->header().run_id(), "second");
    EXPECT_THAT(journal->Find(1, {0, 2}), IsNull());
  }
  EXPECT_EQ(Open("x", /*resume=*/true)->found(), 0);
}

TEST_F(BenchJournalTest, AnotherIdentityFindsNothing) {
  ASSERT_TRUE(Open("x", /*resume=*/false)->Keep(Round(1)).ok());
  EXPECT_EQ(Open("y", /*resume=*/true)->found(), 0);
  EXPECT_EQ(Open("x", /*resume=*/true)->found(), 2);
}

TEST_F(BenchJournalTest, TwoProcessesDoNotShareOne) {
  const auto journal = Open("x", /*resume=*/false);
  EXPECT_FALSE(BenchJournal::Open(folder_, "x", header_, false).ok());
}

// A killed writer leaves a torn tail at most; what is damaged is said.
TEST_F(BenchJournalTest, ATornTailIsNotCounted) {
  ASSERT_TRUE(Open("x", /*resume=*/false)->Keep(Round(1)).ok());
  ASSERT_TRUE(Open("x", /*resume=*/true)->Keep(Round(2)).ok());
  const std::string path = (*ListRecursively(folder_, ".journal"))[0];
  const std::string bytes = *ReadFile(path);
  for (size_t cut = 1; cut < 20; ++cut) {
    ASSERT_TRUE(
        WriteFileAtomically(path, bytes.substr(0, bytes.size() - cut)).ok());
    EXPECT_EQ(Open("x", /*resume=*/true)->found(), 2);
  }
}

TEST_F(BenchJournalTest, ADamagedOneIsSaidToWhoGoesOnAndReplacedForOthers) {
  ASSERT_TRUE(Open("x", /*resume=*/false)->Keep(Round(1)).ok());
  ASSERT_TRUE(Open("x", /*resume=*/true)->Keep(Round(2)).ok());
  const std::string path = (*ListRecursively(folder_, ".journal"))[0];
  const std::string whole = *ReadFile(path);
  std::string in_the_middle = whole;
  in_the_middle[whole.size() / 3] ^= 1;
  for (const std::string& damaged : {std::string(), std::string("garbage"),
                                     whole.substr(0, 12), in_the_middle}) {
    ASSERT_TRUE(WriteFileAtomically(path, damaged).ok());
    const auto resumed = BenchJournal::Open(folder_, "x", header_, true);
    ASSERT_FALSE(resumed.ok());
    EXPECT_THAT(std::string(resumed.status().message()),
                ::testing::HasSubstr(path));
    EXPECT_EQ(*ReadFile(path), damaged);
    const auto anew = Open("x", /*resume=*/false);
    EXPECT_EQ(anew->elapsed_ns(), 0);
    EXPECT_THAT(anew->Find(1, {0, 2}), IsNull());
    ASSERT_TRUE(anew->Keep(Round(1)).ok());
  }
  EXPECT_EQ(Open("x", /*resume=*/true)->found(), 2);
}

TEST_F(BenchJournalTest, ForgetsWhatNobodyWentOnWith) {
  ASSERT_TRUE(CreateDirectories(folder_).ok());
  ASSERT_EQ(mkfifo(JoinPath(folder_, "pipe.journal").c_str(), 0600), 0);
  ASSERT_TRUE(Open("x", /*resume=*/false)->Keep(Round(1)).ok());
  constexpr int64_t kDayNs = int64_t{24} * 3600 * 1'000'000'000;
  header_.set_started_unix_ns(header_.started_unix_ns() + 29 * kDayNs);
  Open("y", /*resume=*/false);
  EXPECT_EQ(ListRecursively(folder_, ".journal")->size(), 3);
  header_.set_started_unix_ns(header_.started_unix_ns() + 2 * kDayNs);
  Open("z", /*resume=*/false);
  EXPECT_EQ(ListRecursively(folder_, ".journal")->size(), 3);
}

}  // namespace
}  // namespace optrail::suites
