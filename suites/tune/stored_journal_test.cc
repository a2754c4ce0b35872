// Sessions that an earlier version left unfinished go on with today's code:
// suites/testdata/stored_*.

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/file/journal.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "suites/tune/tune_session.h"
#include "suites/worker/testing/one_by_one_evaluator.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/session_journal.pb.h"
#include "tuning/session/session_journal.h"

namespace optrail::suites {
namespace {

constexpr char kStored[] = "suites/testdata/stored_2026_11";

// Every config takes as long as any other.
class FlatEvaluator : public OneByOneEvaluator {
 public:
  Evaluation EvaluateOne(const proto::Config& config,
                         const EvaluationOptions& options) override {
    (options.process_of_round ? verified : searched)
        .push_back(tuning::CanonicalText(config));
    Evaluation evaluation;
    evaluation.mutable_trial()->set_outcome(proto::OK);
    evaluation.mutable_trial()->set_elapsed_ns(1'000'000);
    evaluation.mutable_trial()->set_time_ns(5'000);
    proto::Measurement measurement;
    measurement.set_calls_per_sample(1);
    measurement.add_sample_ns(5'000);
    measurement.set_median_ns(5'000);
    measurement.set_clean_sample_count(1);
    *evaluation.mutable_trial()->add_measurements() = measurement;
    return evaluation;
  }

  std::vector<std::string> searched, verified;
};

class StoredJournalTest : public ::testing::Test {
 protected:
  // Copies the journal, whose name begins so, to a folder that can be written,
  // and reads what a session of the same task would begin with: the header in
  // the journal, which has space and hardware, too.
  void Use(const std::string& prefix) {
    std::string folder = ::testing::TempDir() + "/journal_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    options_.journal_directory = folder;
    const auto files = ListRecursively(kStored, ".journal");
    ASSERT_TRUE(files.ok()) << files.status();
    for (const std::string& file : *files) {
      const std::string name(FileNameOf(file));
      if (!absl::StartsWith(name, prefix)) continue;
      name_ = name;
      ASSERT_TRUE(
          WriteFileAtomically(JoinPath(folder, name), *ReadFile(file)).ok());
    }
    const auto journal = ReadJournal(JoinPath(folder, name_));
    ASSERT_TRUE(journal.ok()) << journal.status();
    for (const std::string& bytes : journal->records) {
      ASSERT_TRUE(records_.emplace_back().ParseFromString(bytes));
    }
    proto::Session header = records_[0].header();
    known_ = header.trials_size();
    header.clear_trials();
    const auto space =
        tuning::Space::Parse(header.space_textproto(), "the stored space");
    ASSERT_TRUE(space.ok()) << space.status();
    space_ = std::make_unique<tuning::Space>(*space);
    EXPECT_EQ(space_->hash(), header.space_hash());
    tuning::BindOptions bind;
    bind.threads = header.task().threads();
    auto bound = space_->Bind(header.task().shape(), header.hardware(), bind);
    ASSERT_TRUE(bound.ok()) << bound.status();
    bound_ = *std::move(bound);
    EXPECT_EQ(bound_->count(), header.valid_config_count());
    setup_.header = header;
    setup_.space = bound_.get();
    options_.strategy = header.strategy();
    options_.seed = header.seed();
    options_.budget = header.budget();
  }

  std::string name_;
  std::vector<proto::TuneJournalRecord> records_;
  int known_ = 0;
  std::unique_ptr<tuning::Space> space_;
  std::unique_ptr<tuning::BoundSpace> bound_;
  TuneSetup setup_;
  TuneOptions options_;
  FlatEvaluator evaluator_;
  FakeClock clock_;
};

TEST_F(StoredJournalTest, ASessionKilledInItsSearchGoesOn) {
  Use("matmul-");
  // The task's key makes the name: it is today's, too.
  EXPECT_EQ(FileNameOf(tuning::SessionJournal::Path(options_.journal_directory,
                                                    records_[0].header())),
            name_);
  const int journaled = static_cast<int>(records_.size()) - 1;
  EXPECT_EQ(journaled, 23);
  const auto session = RunTuneSession(setup_, options_, evaluator_, clock_);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_EQ(session->sittings(), 2);
  EXPECT_EQ(session->session_id(), records_[0].header().session_id());
  EXPECT_EQ(session->warm_start_trial_count(), known_);
  // Nothing is measured again, and the budget of 40 is kept.
  EXPECT_EQ(session->trials_size(), known_ + 40);
  EXPECT_EQ(evaluator_.searched.size(), 40 - journaled);
  for (int i = 0; i < journaled; ++i) {
    EXPECT_EQ(session->trials(known_ + i).SerializeAsString(),
              records_[i + 1].trial().SerializeAsString())
        << i;
  }
}

TEST_F(StoredJournalTest, ASessionKilledWhileVerifyingSearchesNoFurther) {
  Use("add-");
  EXPECT_EQ(FileNameOf(tuning::SessionJournal::Path(options_.journal_directory,
                                                    records_[0].header())),
            name_);
  std::vector<std::string> finalists;
  int readings = 0;
  for (const proto::TuneJournalRecord& record : records_) {
    for (const proto::Finalist& finalist :
         record.finalists_chosen().finalists()) {
      finalists.push_back(tuning::CanonicalText(finalist.config()));
    }
    readings += record.has_reading() ? 1 : 0;
  }
  ASSERT_EQ(finalists.size(), 4);  // and the default
  ASSERT_EQ(readings, 10);
  const auto session = RunTuneSession(setup_, options_, evaluator_, clock_);
  ASSERT_TRUE(session.ok()) << session.status();
  EXPECT_THAT(evaluator_.searched, ::testing::IsEmpty());
  EXPECT_EQ(session->trials_size(), 6);
  ASSERT_EQ(session->finalists_size(), 4);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(tuning::CanonicalText(session->finalists(i).config()),
              finalists[i]);
  }
  EXPECT_TRUE(session->has_winner());
}

}  // namespace
}  // namespace optrail::suites
