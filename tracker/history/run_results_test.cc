#include "tracker/history/run_results.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tracker/history/evaluation/generate_history.h"
#include "tracker/history/record.h"
#include "tracker/series/series_key.h"

namespace optrail::tracker {
namespace {

using ::testing::HasSubstr;

class RunResultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    history_ = *History::Open(JoinPath(
        ::testing::TempDir(),
        ::testing::UnitTest::GetInstance()->current_test_info()->name()));
    GenerateOptions options;
    options.benchmarks = 40;
    options.hardware = 1;
    options.commits = 3;
    options.samples = 2;
    options.oddities = true;
    ASSERT_TRUE(GenerateRuns(options, [&](proto::Run run) {
                  runs_.push_back(std::move(run));
                  return absl::OkStatus();
                }).ok());
  }

  // Records bytes that no writer of this program makes.
  void Put(const std::string& run_id, const std::string& message) const {
    const auto place = PlaceOf(history_->dir(), "runs", run_id);
    ASSERT_TRUE(place.ok()) << place.status();
    ASSERT_TRUE(history_->store().Put(*place, WithChecksum(message)).ok());
  }

  absl::optional<History> history_;
  std::vector<proto::Run> runs_;
};

TEST_F(RunResultsTest, FindsWhatTheWholeRunHoldsAndParsesNothingElse) {
  for (const proto::Run& run : runs_) {
    ASSERT_TRUE(history_->AppendRun(run).ok());
    proto::Run whole = *history_->ReadRun(run.run_id());
    const auto results = RunResults::Read(*history_, run.run_id());
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ((*results)->parsed(), 0);
    int asked = 0;
    for (int i = 0; i < whole.results_size(); i += 3) {
      const auto* const found = (*results)->Find(whole.results(i).key());
      ASSERT_NE(found, nullptr) << i;
      EXPECT_EQ(found->SerializeAsString(),
                whole.results(i).SerializeAsString());
      EXPECT_EQ(found, (*results)->Find(whole.results(i).key()));
      EXPECT_EQ((*results)->parsed(), ++asked);
    }
    proto::BenchmarkKey other = whole.results(0).key();
    other.set_threads(77);
    EXPECT_EQ((*results)->Find(other), nullptr);
    EXPECT_EQ((*results)->parsed(), asked);
    whole.clear_results();
    EXPECT_EQ((*results)->run().SerializeAsString(), whole.SerializeAsString());
  }
}

// The first result counts where a run has a benchmark twice.
TEST_F(RunResultsTest, FindsTheFirstOfTwo) {
  proto::Run run = runs_[0];
  *run.add_results() = run.results(2);
  run.mutable_results(2)->set_detail("the first");
  ASSERT_TRUE(history_->AppendRun(run).ok());
  const auto results = RunResults::Read(*history_, run.run_id());
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)->Find(run.results(2).key())->detail(), "the first");
}

// Other writers may order the fields of a key as they like, or store it in
// pieces.
TEST_F(RunResultsTest, FindsAKeyThatIsStoredInAnotherWay) {
  proto::Run run = runs_[0];
  const proto::BenchmarkResult result = run.results(1);
  run.clear_results();
  proto::BenchmarkKey first, second = result.key();
  first.set_threads(result.key().threads());
  first.set_operator_name(result.key().operator_name());
  second.clear_threads();
  second.clear_operator_name();
  const auto field = [](int number, const std::string& contents) {
    proto::Run text;
    text.set_run_id(contents);  // field 1
    std::string bytes = text.SerializeAsString();
    bytes[0] = static_cast<char>(number << 3 | 2);
    return bytes;
  };
  const std::string in_pieces = field(1, first.SerializeAsString()) +
                                field(1, second.SerializeAsString());
  const std::string in_other_order =
      field(1, second.SerializeAsString() + first.SerializeAsString());
  for (const std::string& stored : {in_pieces, in_other_order}) {
    run.set_run_id(absl::StrCat("20261120T090807Z-00000000000",
                                stored == in_pieces ? "a" : "b"));
    Put(run.run_id(),
        run.SerializeAsString() + field(proto::Run::kResultsFieldNumber,
                                        stored + field(3, "a detail")));
    const auto results = RunResults::Read(*history_, run.run_id());
    ASSERT_TRUE(results.ok()) << results.status();
    const auto* const found = (*results)->Find(result.key());
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->detail(), "a detail");
    EXPECT_EQ(CanonicalText(found->key()), CanonicalText(result.key()));
  }
}

TEST_F(RunResultsTest, AResultThatCannotBeTrueIsNone) {
  proto::Run run = runs_[0];
  proto::Measurement* const measurement =
      run.mutable_results(3)->add_measurements();
  measurement->set_median_ns(std::nan(""));
  Put(run.run_id(), run.SerializeAsString());
  const auto results = RunResults::Read(*history_, run.run_id());
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)->Find(run.results(3).key()), nullptr);
  EXPECT_EQ((*results)->Find(run.results(3).key()), nullptr);
  EXPECT_NE((*results)->Find(run.results(4).key()), nullptr);
}

TEST_F(RunResultsTest, SaysWhatItCannotRead) {
  const std::string& id = runs_[0].run_id();
  EXPECT_TRUE(absl::IsNotFound(RunResults::Read(*history_, id).status()));
  EXPECT_FALSE(RunResults::Read(*history_, "no id").ok());
  // One run in another's place.
  Put(id, runs_[1].SerializeAsString());
  const absl::Status misplaced = RunResults::Read(*history_, id).status();
  EXPECT_TRUE(absl::IsDataLoss(misplaced)) << misplaced;
  EXPECT_THAT(std::string(misplaced.message()), HasSubstr("whose place is"));
  ASSERT_TRUE(history_->AppendRun(runs_[2]).ok());
  const auto place = PlaceOf(history_->dir(), "runs", runs_[2].run_id());
  std::string bytes = *history_->store().Read(*place);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(history_->store().Replace(*place, bytes).ok());
  const absl::Status damaged =
      RunResults::Read(*history_, runs_[2].run_id()).status();
  EXPECT_TRUE(absl::IsDataLoss(damaged)) << damaged;
  EXPECT_THAT(std::string(damaged.message()), HasSubstr(*place));
}

}  // namespace
}  // namespace optrail::tracker
