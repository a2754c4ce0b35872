#include "tracker/judge/fold_memory.h"

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/file/file.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "tracker/detect/online.h"
#include "tracker/history/evaluation/generate_history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/record.h"
#include "tracker/history/retention.h"
#include "tracker/judge/judge.h"
#include "tracker/judge/testing/random_answer.h"
#include "tracker/series/series.h"
#include "tracker/triage/triage.h"

namespace optrail::tracker {
namespace {

constexpr int64_t kNowUnixNs = 4'000'000'000LL * 1'000'000'000;

std::string TextOf(const Change& change) {
  const ChangePoint& at = change.change;
  std::string text = absl::StrFormat(
      "%d %d %d..%d..%d [%d, %d) %a %a %a %a %a %a %a %d", change.kind,
      change.provisional, at.earliest, at.index, at.latest, at.begin, at.end,
      at.confidence, at.level_before, at.level_after, at.relative_change,
      at.relative_change_low, at.relative_change_high, change.worse_by,
      change.IsUndone());
  absl::StrAppend(&text, " ", change.cause, " ", change.opinion.state, " ",
                  change.opinion.record_id, " ", change.opinion.reason);
  if (change.before != nullptr) {
    absl::StrAppend(&text, " after ", change.before->runs->ids.front());
  }
  return text;
}

// All that the judge said, a line per series and change.
std::string TextOf(const std::vector<Judgement>& judgements) {
  std::string text;
  for (const Judgement& judgement : judgements) {
    absl::StrAppend(&text, "standing ", judgement.standing, " ", judgement.why,
                    " ", judgement.decided_by, " ", judgement.baseline_begin,
                    " ", judgement.known_points, " ", judgement.renamed_to,
                    "\n");
    for (const Change& change : judgement.changes) {
      absl::StrAppend(&text, " ", TextOf(change), "\n");
    }
    for (const double weight : judgement.weights) {
      absl::StrAppendFormat(&text, " %a", weight);
    }
    for (const Level& level : judgement.levels) {
      absl::StrAppendFormat(&text, " %d..%d %a", level.begin, level.end,
                            level.value);
    }
    text += "\n";
  }
  return text;
}

class FoldMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "/folds_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }

  // Every level shifts several times.
  static std::vector<proto::Run> MakeRuns(uint64_t seed, int commits) {
    GenerateOptions options;
    options.seed = seed;
    options.benchmarks = 3;
    options.hardware = 1;
    options.commits = commits;
    options.processes = 3;
    options.samples = 3;
    options.oddities = true;
    std::vector<proto::Run> runs;
    EXPECT_TRUE(GenerateRuns(options, [&](proto::Run run) -> absl::Status {
                  const int commit = static_cast<int>(runs.size());
                  Slow((commit > 20 && commit < 36) || commit > 75 ? 5 : 0,
                       &run);
                  runs.push_back(std::move(run));
                  return absl::OkStatus();
                }).ok());
    return runs;
  }

  // By 1 / share; not at all by 0.
  static void Slow(int share, proto::Run* run) {
    if (share == 0) return;
    for (proto::BenchmarkResult& result : *run->mutable_results()) {
      for (proto::Measurement& measurement : *result.mutable_measurements()) {
        for (auto& ns : *measurement.mutable_sample_ns()) ns += ns / share;
        if (measurement.has_median_ns()) {
          measurement.set_median_ns(measurement.median_ns() * (1 + 1. / share));
        }
      }
    }
  }

  // With what the index remembers, and keeps what was found.
  std::string Remembered(const History& history, const TriageBook& book) {
    auto loaded = LoadSeries(history);
    EXPECT_TRUE(loaded.ok() && loaded->folds.has_value());
    FoldMemory folds(*std::move(loaded->folds));
    JudgeOptions options;
    options.runs = &loaded->runs;
    options.folds = &folds;
    const std::string text = TextOf(JudgeAll(loaded->series, book, options));
    changed_ = folds.changed();
    series_ = loaded->series.size();
    KeepFolds(history, changed_);
    return text;
  }

  static std::string Fresh(const History& history, const TriageBook& book) {
    const auto loaded = LoadSeriesFromFiles(history);
    EXPECT_TRUE(loaded.ok() && !loaded->folds.has_value());
    JudgeOptions options;
    options.runs = &loaded->runs;
    return TextOf(JudgeAll(loaded->series, book, options));
  }

  std::string dir_;
  std::map<std::string, std::string> changed_;
  size_t series_ = 0;
};

TEST_F(FoldMemoryTest, TheAnswerIsThatOfAFreshFoldWhateverHappens) {
  int went_on = 0, folded_anew = 0, changes = 0;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const History history = *History::Open(JoinPath(dir_, absl::StrCat(seed)));
    std::vector<proto::Run> runs = MakeRuns(seed, 90);
    // Mostly in order, some late.
    for (size_t i = 0; i + 1 < runs.size(); ++i) {
      if (rng.UniformInt(8) > 0) continue;
      std::swap(runs[i], runs[i + rng.UniformInt(runs.size() - i)]);
    }
    ASSERT_TRUE(history.AppendRun(runs[0]).ok());
    ASSERT_TRUE(HistoryIndex::Open(history).ok());
    std::vector<proto::TriageRecord> answers;
    size_t next = 1;
    while (next < runs.size()) {
      std::string what;
      switch (rng.UniformInt(6)) {
        case 0: {
          what = "answered";
          answers.push_back(RandomAnswer(
              runs, static_cast<int64_t>(answers.size()), kNowUnixNs, rng));
          break;
        }
        case 1: {
          what = "thinned";
          RetentionPolicy policy;
          policy.keep_runs = 40;
          policy.keep_days = 0;
          policy.keep_every = 1 + static_cast<int>(rng.UniformInt(2));
          const auto plan = PlanRetention(history, policy, kNowUnixNs);
          ASSERT_TRUE(plan.ok()) << plan.status();
          ASSERT_TRUE(ApplyRetention(history, *plan, kNowUnixNs).ok());
          break;
        }
        case 2: {
          what = "replaced or removed";
          const RunList list = *history.ListRuns();
          const std::string id =
              list.runs[rng.UniformInt(list.runs.size())].id();
          if (rng.UniformInt(3) == 0 && list.runs.size() > 1) {
            ASSERT_TRUE(history.RemoveRun(id).ok());
            break;
          }
          proto::Run run = *history.ReadRun(id);
          Slow(9, &run);
          ASSERT_TRUE(history.ReplaceRun(run).ok());
          break;
        }
        default:
          what = "recorded";
          for (int i = 0; i < 6 && next < runs.size(); ++i) {
            ASSERT_TRUE(history.AppendRun(runs[next++]).ok());
          }
      }
      SCOPED_TRACE(what);
      const TriageBook book(answers, kNowUnixNs);
      const std::string fresh = Fresh(history, book);
      ASSERT_EQ(Remembered(history, book), fresh);
      changes += absl::StrContains(fresh, "\n 0 ");
      folded_anew += static_cast<int>(changed_.size());
      // Nothing has happened since.
      ASSERT_EQ(Remembered(history, book), fresh);
      ASSERT_TRUE(changed_.empty());
      went_on += static_cast<int>(series_);
    }
  }
  EXPECT_GT(changes, 20) << "there was something to find";
  EXPECT_GT(went_on, 100);
  EXPECT_GT(folded_anew, 100);
}

TEST_F(FoldMemoryTest, DistrustsWhatIsDamagedOrOfAnotherVersionOrSeries) {
  const std::vector<Series> series = BuildSeries(MakeRuns(3, 60));
  const TriageBook book({}, 0);
  const std::string fresh = TextOf(JudgeAll(series, book));
  const std::unordered_map<std::string, std::string> nothing;
  FoldMemory first(nothing);
  JudgeOptions options;
  options.folds = &first;
  EXPECT_EQ(TextOf(JudgeAll(series, book, options)), fresh);
  ASSERT_EQ(first.changed().size(), series.size());
  const std::map<std::string, std::string>& good = first.changed();

  std::unordered_map<std::string, std::string> others, damaged, older;
  std::string last = good.rbegin()->second;
  for (const auto& [text, bytes] : good) {
    others[text] = last;
    last = bytes;
    damaged[text] = bytes;
    damaged[text][bytes.size() / 2] ^= 1;
    proto::SeriesFolds folds;
    ASSERT_TRUE(folds.ParseFromString(bytes));
    for (proto::FoldState& epoch : *folds.mutable_epochs()) {
      epoch.clear_confirmed();
      epoch.add_returns()->set_index(7);
    }
    FoldMemory memory(nothing);
    memory.Keep(text, folds);
    // Everything fits but the version.
    ASSERT_TRUE(folds.ParseFromString(memory.changed().at(text)));
    ASSERT_EQ(folds.version(), OnlineDetector::kVersion);
    folds.set_version(OnlineDetector::kVersion - 1);
    folds.clear_checksum();
    older[text] = EncodeRecord(folds);
  }
  for (const auto& kept : {others, damaged, older}) {
    FoldMemory memory(kept);
    options.folds = &memory;
    EXPECT_EQ(TextOf(JudgeAll(series, book, options)), fresh);
    EXPECT_EQ(memory.changed(), good);
  }
  FoldMemory memory(
      std::unordered_map<std::string, std::string>(good.begin(), good.end()));
  options.folds = &memory;
  EXPECT_EQ(TextOf(JudgeAll(series, book, options)), fresh);
  EXPECT_TRUE(memory.changed().empty());
}

TEST_F(FoldMemoryTest, KeepsOnlyWhatIsOfWholeSeriesAndHasAnIndex) {
  const History history = *History::Open(JoinPath(dir_, "h"));
  for (const proto::Run& run : MakeRuns(4, 10)) {
    ASSERT_TRUE(history.AppendRun(run).ok());
  }
  KeepFolds(history, {{"some series", "some bytes"}});
  EXPECT_FALSE(FileExists(JoinPath(history.dir(), "index.sqlite")));
  EXPECT_FALSE(LoadSeries(history)->folds.has_value());
  ASSERT_TRUE(HistoryIndex::Open(history).ok());
  Remembered(history, TriageBook({}, 0));
  EXPECT_EQ(LoadSeries(history)->folds->size(), series_);
  SeriesQuery query;
  query.runs.hardware_id = "amd-epyc-zen4-2c";
  EXPECT_TRUE(LoadSeries(history, query)->folds.has_value());
  query.runs.suite = "nightly";
  EXPECT_FALSE(LoadSeries(history, query)->folds.has_value());
  // A series that is gone is none that anything is kept of.
  KeepFolds(history, {{"some series", "some bytes"}});
  EXPECT_EQ(LoadSeries(history)->folds->size(), series_);
}

}  // namespace
}  // namespace optrail::tracker
