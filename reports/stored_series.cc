#include "reports/stored_series.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/hash/hash.h"
#include "base/process/parallel_for.h"
#include "base/status_macros.h"
#include "reports/digest.h"
#include "reports/page_data.h"
#include "reports/page_series.h"
#include "tracker/judge/fold_memory.h"
#include "tracker/judge/judge.h"

namespace optrail::reports {
namespace {

using tracker::Series;
using tracker::SeriesScan;

// The first report of a history takes the number of processes per point from so
// many series.
constexpr size_t kSampledSeries = 8;

// A hardware id and a branch.
using Place = std::pair<std::string, std::string>;

// By hardware and branch, all that a series of theirs rests on but its own key
// and what people said: its runs in the order of series and in that of commits.
// A row of the index is of one run, as it was recorded, for ever.
std::map<Place, std::string> RunsByPlace(const SeriesScan& scan,
                                         const RunTables& tables) {
  struct Member {
    int commit;
    int64_t row;
  };
  std::map<Place, std::vector<Member>> members;
  for (int i = 0; i < scan.runs().size(); ++i) {
    const proto::Run& run = scan.runs().run(i);
    members[{run.hardware().id(), run.commit().branch()}].push_back(
        {tables.CommitOf(run.run_id()), scan.run_rows()[i]});
  }
  std::map<Place, std::string> texts;
  for (auto& [place, runs] : members) {
    std::string& text = texts[place];
    for (const Member& run : runs) absl::StrAppend(&text, run.row, ",");
    std::stable_sort(
        runs.begin(), runs.end(),
        [](const Member& a, const Member& b) { return a.commit < b.commit; });
    int commit = -1;
    for (const Member& run : runs) {
      absl::StrAppend(&text, run.commit == commit ? "," : ";", run.row);
      commit = run.commit;
    }
    text = Fingerprint(text);
  }
  return texts;
}

// The series of one scan on their way to a report, a step per function.
class Loader {
 public:
  Loader(const SeriesScan& scan, const StoredOptions& options,
         StoredSeries* stored)
      : scan_(scan), options_(options), stored_(*stored) {
    std::vector<const proto::Run*> runs;
    for (int i = 0; i < scan.runs().size(); ++i) {
      runs.push_back(&scan.runs().run(i));
      stored_.runs.push_back(scan.runs().run(i));
    }
    stored_.tables = std::make_unique<RunTables>(runs);
    runs_.emplace(scan.runs(), scan.run_rows(), *stored_.tables);
    judge_.recent_points = options.recent_points;
    judge_.runs = &stored_.runs;
  }

  absl::Status Load() {
    FindKeys();
    DecodeAll();
    OPTRAIL_RETURN_IF_ERROR(GuessLimit());
    // Counting again takes a limit that was guessed from a few to the right
    // one.
    for (int last = -1; limit_ != last;) {
      last = limit_;
      OPTRAIL_RETURN_IF_ERROR(ReadStale());
      SetLimit();
    }
    OPTRAIL_RETURN_IF_ERROR(Assemble());
    return ReadWhole();
  }

 private:
  struct One {
    uint64_t key = 0;
    bool is_there = false;  // the digest is of `key`
    bool is_empty = false;  // it has no points
    Series named;           // with key and text alone, until it is decoded
    KeptDigest digest;
  };

  size_t size() const { return scan_.series().size(); }

  void FindKeys() {
    all_.resize(size());
    const auto by_place = RunsByPlace(scan_, *stored_.tables);
    ParallelFor(static_cast<int64_t>(size()), /*threads=*/0, [&](int64_t i) {
      const tracker::ListedSeries& listed = scan_.series()[i];
      const auto runs =
          by_place.find({listed.key.hardware_id, listed.key.branch});
      Series& series = all_[i].named;
      series.key = listed.key;
      series.text = listed.text;
      all_[i].key = StableHash(
          absl::StrCat(options_.program, "\n", options_.recent_points, "\n",
                       runs == by_place.end() ? "" : runs->second, "\n",
                       listed.text, "\n", options_.book->SayingsOf(series)));
    });
  }

  void DecodeAll() {
    if (options_.program.empty()) return;
    ParallelFor(static_cast<int64_t>(size()), /*threads=*/0, [&](int64_t i) {
      const std::string& bytes = scan_.series()[i].digest;
      if (!bytes.empty()) Decode(i, bytes, all_[i].named);
    });
  }

  // Takes key and text from `named`, if the digest is of use.
  void Decode(size_t i, const std::string& bytes, Series& named) {
    KeptDigest digest;
    if (!DecodeDigest(bytes, *runs_, &digest) || digest.key != all_[i].key) {
      return;
    }
    digest.series.key = std::move(named.key);
    digest.series.text = std::move(named.text);
    all_[i].digest = std::move(digest);
    all_[i].is_there = true;
  }

  PageCounts Counts() const {
    PageCounts counts;
    for (const One& one : all_) {
      counts.series += !one.is_empty;
      if (!one.is_there) continue;
      counts.points += one.digest.facts.point_count;
      counts.processes += one.digest.facts.process_count;
    }
    return counts;
  }
  void SetLimit() { limit_ = PointsPerSeries(Counts(), options_.data_bytes); }

  absl::Status GuessLimit() {
    PageCounts counts = Counts();
    if (counts.points == 0) {
      std::vector<size_t> some;
      for (size_t i = 0; i < std::min(size(), kSampledSeries); ++i) {
        some.push_back(i);
      }
      std::mutex mutex;
      OPTRAIL_RETURN_IF_ERROR(scan_.Read(some, [&](size_t, Series series) {
        const SeriesView view = ViewOf(series, *stored_.tables, 0);
        const std::lock_guard<std::mutex> lock(mutex);
        counts.points += view.point_count;
        counts.processes += view.process_count;
      }));
    }
    limit_ = PointsPerSeries(counts, options_.data_bytes);
    return absl::OkStatus();
  }

  // Returns true if the digest draws what it would draw today.
  bool IsDrawn(const One& one) const {
    const JudgedSeries::Digested& facts = one.digest.facts;
    // The fewest points have few processes, too.
    const bool is_fewest = limit_ == kFewestPoints;
    return one.is_there &&
           (facts.drawn.limit == limit_ ||
            ((facts.drawn.limit == kFewestPoints) == is_fewest &&
             facts.point_count <= std::min(facts.drawn.limit, limit_)));
  }

  absl::Status ReadStale() {
    std::vector<size_t> stale;
    for (size_t i = 0; i < size(); ++i) {
      if (!all_[i].is_empty && !IsDrawn(all_[i])) stale.push_back(i);
    }
    if (stale.empty()) return absl::OkStatus();
    stored_.series_read += static_cast<int64_t>(stale.size());
    OPTRAIL_RETURN_IF_ERROR(UseFolds());
    OPTRAIL_RETURN_IF_ERROR(scan_.Read(
        stale, [&](size_t i, Series series) { Digest(i, std::move(series)); }));
    stored_.folds = folds_->changed();
    return absl::OkStatus();
  }

  absl::Status UseFolds() {
    if (folds_.has_value()) return absl::OkStatus();
    OPTRAIL_ASSIGN_OR_RETURN(auto known, scan_.ReadFolds());
    folds_.emplace(std::move(known));
    judge_.folds = &*folds_;
    return absl::OkStatus();
  }

  // On any thread.
  void Digest(size_t i, Series series) {
    all_[i].is_there = false;
    all_[i].is_empty = series.points.empty();
    if (all_[i].is_empty) return;
    const tracker::Judgement judgement =
        tracker::JudgeSeries(series, *options_.book, judge_);
    SeriesView view = ViewOf(series, *stored_.tables, 0);
    AddJudgement(judgement, view);
    std::string bytes =
        EncodeDigest(all_[i].key, limit_, view, judgement, *runs_);
    Decode(i, bytes, series);
    if (options_.program.empty()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    stored_.digests[scan_.series()[i].text] = std::move(bytes);
  }

  absl::Status Assemble() {
    for (size_t i = 0; i < size(); ++i) {
      if (all_[i].is_empty) continue;
      // No page lacks a series in silence: the caller reads all points.
      if (!all_[i].is_there) {
        return absl::InternalError(
            absl::StrCat("series ", scan_.series()[i].text,
                         ": its digest, just written, cannot be read"));
      }
      KeptDigest& digest = all_[i].digest;
      stored_.judged.digested[static_cast<int64_t>(series_.size())] =
          std::move(digest.facts);
      listed_.push_back(i);
      series_.push_back(std::move(digest.series));
      stored_.judged.judgements.push_back(std::move(digest.judgement));
    }
    return absl::OkStatus();
  }

  // Series that are judged by others want all of their points.
  absl::Status ReadWhole() {
    const std::vector<bool> needed = tracker::NeedsAllPoints(series_, judge_);
    std::vector<size_t> wanted;
    std::map<size_t, size_t> place_of;
    for (size_t k = 0; k < series_.size(); ++k) {
      if (!needed[k]) continue;
      wanted.push_back(listed_[k]);
      place_of[listed_[k]] = k;
    }
    std::vector<tracker::Judgement>& judgements = stored_.judged.judgements;
    if (!wanted.empty()) {
      stored_.series_read += static_cast<int64_t>(wanted.size());
      OPTRAIL_RETURN_IF_ERROR(UseFolds());
      OPTRAIL_RETURN_IF_ERROR(scan_.Read(wanted, [&](size_t i, Series series) {
        const size_t k = place_of.at(i);
        series_[k] = std::move(series);
        judgements[k] =
            tracker::JudgeSeries(series_[k], *options_.book, judge_);
      }));
      stored_.folds = folds_->changed();
      for (const auto& [i, k] : place_of) {
        stored_.judged.digested.erase(static_cast<int64_t>(k));
      }
    }
    auto all = std::make_shared<std::vector<Series>>(std::move(series_));
    for (size_t k = 0; k < all->size(); ++k) {
      KeptDigest::Settle((*all)[k], judgements[k]);
    }
    stored_.judged.all = std::move(all);
    return absl::OkStatus();
  }

  const SeriesScan& scan_;
  const StoredOptions& options_;
  StoredSeries& stored_;
  absl::optional<DigestRuns> runs_;
  tracker::JudgeOptions judge_;
  absl::optional<tracker::FoldMemory> folds_;
  std::vector<One> all_;  // by place in the scan
  int limit_ = 0;
  std::mutex mutex_;
  // Those with points.
  std::vector<Series> series_;
  std::vector<size_t> listed_;
};

}  // namespace

absl::StatusOr<StoredSeries> LoadStoredSeries(tracker::HistoryIndex& index,
                                              const StoredOptions& options) {
  StoredSeries stored;
  OPTRAIL_RETURN_IF_ERROR(index.Scan([&](const SeriesScan& scan) {
    return Loader(scan, options, &stored).Load();
  }));
  // Outside of the scan, which holds a transaction open.
  tracker::JudgeOptions judge;
  judge.recent_points = options.recent_points;
  judge.runs = &stored.runs;
  tracker::JudgeTogether(*stored.judged.all, *options.book, judge,
                         stored.judged.judgements);
  OPTRAIL_ASSIGN_OR_RETURN(stored.bad_files, index.BadFiles());
  stored.notices = index.notices();
  return stored;
}

void KeepStoredSeries(tracker::HistoryIndex& index,
                      const StoredSeries& stored) {
  (void)index.KeepFolds(stored.folds);
  (void)index.KeepDigests(stored.digests);
}

}  // namespace optrail::reports
