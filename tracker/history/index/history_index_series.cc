// How the index answers with whole series.

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/process/parallel_for.h"
#include "base/status_macros.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/index/index.pb.h"
#include "tracker/history/index/index_rows.h"
#include "tracker/history/record.h"
#include "tracker/series/series_key.h"

namespace optrail::tracker {
namespace {

// Series, or attributes, that are asked for together, as far as few that are
// not wanted lie between them: a few megabytes.
constexpr size_t kSeriesTogether = 64;
constexpr int64_t kFarthestTogether = 2;

// Returns where the group ends that begins with one of `count` series or
// attributes, of ascending rows.
template <typename RowOf>
size_t EndOfGroup(size_t begin, size_t count, const RowOf& row_of) {
  size_t end = begin + 1;
  while (end < count && end - begin < kSeriesTogether &&
         row_of(end) - row_of(end - 1) <= kFarthestTogether) {
    ++end;
  }
  return end;
}

}  // namespace

// Reads series, a group of neighbours at a time; lives within one transaction,
// so that all are of one state of the index.
class HistoryIndex::SeriesReader {
 public:
  static absl::StatusOr<SeriesReader> Create(Database& db) {
    SeriesReader reader;
    OPTRAIL_ASSIGN_OR_RETURN(
        reader.get_observations_,
        db.Prepare("SELECT series, run, attributes, bytes FROM observations "
                   "WHERE series BETWEEN ? AND ? "
                   "ORDER BY series, run, ordinal"));
    OPTRAIL_ASSIGN_OR_RETURN(
        reader.get_attributes_,
        db.Prepare("SELECT attributes, bytes FROM attributes "
                   "WHERE attributes BETWEEN ? AND ? ORDER BY attributes"));
    return reader;
  }

  // Fetches what the index has of the series of the rows [first, last] and of
  // runs that have a place. Neighbours together cost PostgreSQL little more
  // than one: they lie on the same pages, run by run.
  absl::Status Fetch(int64_t first, int64_t last,
                     const std::unordered_map<int64_t, int>& places) {
    rows_.clear();
    bytes_.clear();
    get_observations_->Reset();
    get_observations_->With(first, last);
    while (true) {
      OPTRAIL_ASSIGN_OR_RETURN(const bool more, get_observations_->Step());
      if (!more) break;
      OPTRAIL_RETURN_IF_ERROR(TakeRow(places));
    }
    return FetchAttributes();
  }

  // The series of that row, which was fetched; without points if there are
  // none. Several threads may call it at once.
  absl::StatusOr<Series> Build(int64_t series, SeriesKey key, std::string text,
                               const OrderedRuns& runs) const {
    const auto begin = std::lower_bound(
        rows_.begin(), rows_.end(), series,
        [](const Row& row, int64_t wanted) { return row.series < wanted; });
    auto end = begin;
    while (end != rows_.end() && end->series == series) ++end;
    std::vector<Row> rows(begin, end);
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
      return a.place < b.place;
    });
    SeriesBuilder builder(std::move(key), std::move(text), rows.size());
    Observation observation;
    proto::IndexedObservation stored;
    const Observation* attributes = nullptr;
    for (const Row& row : rows) {
      if (row.attributes != attributes) observation = *row.attributes;
      attributes = row.attributes;
      OPTRAIL_RETURN_IF_ERROR(DecodeRecord(
          absl::string_view(bytes_).substr(row.begin, row.size), &stored));
      OPTRAIL_RETURN_IF_ERROR(SetObservation(stored, &observation));
      builder.Add(runs, row.place, observation);
    }
    return builder.Take();
  }

 private:
  struct Row {
    int64_t series;
    int place;
    const Observation* attributes;
    size_t begin, size;  // of bytes_
  };

  absl::Status TakeRow(const std::unordered_map<int64_t, int>& places) {
    const auto place = places.find(get_observations_->Int(1));
    if (place == places.end()) {
      return absl::DataLossError("index: a run is missing");
    }
    if (place->second == kNoPlace) return absl::OkStatus();
    const auto [attributes, is_new] =
        attributes_.try_emplace(get_observations_->Int(2));
    if (is_new) unfetched_.push_back(attributes->first);
    const absl::string_view bytes = get_observations_->Bytes(3);
    rows_.push_back({get_observations_->Int(0), place->second,
                     &attributes->second, bytes_.size(), bytes.size()});
    bytes_.append(bytes.data(), bytes.size());
    return absl::OkStatus();
  }

  // Fetches the attributes that the observations brought up. Those of series
  // that are neighbours are neighbours, too, and come together.
  absl::Status FetchAttributes() {
    std::sort(unfetched_.begin(), unfetched_.end());
    for (size_t begin = 0, end = 0; begin < unfetched_.size(); begin = end) {
      end = EndOfGroup(begin, unfetched_.size(),
                       [&](size_t i) { return unfetched_[i]; });
      get_attributes_->Reset();
      get_attributes_->With(unfetched_[begin], unfetched_[end - 1]);
      for (size_t next = begin; next < end;) {
        OPTRAIL_ASSIGN_OR_RETURN(const bool more, get_attributes_->Step());
        if (!more) return absl::DataLossError("index: attributes are missing");
        if (get_attributes_->Int(0) != unfetched_[next]) continue;
        OPTRAIL_RETURN_IF_ERROR(DecodeAttributes(
            get_attributes_->Bytes(1), &attributes_.at(unfetched_[next])));
        ++next;
      }
    }
    get_attributes_->Reset();
    unfetched_.clear();
    return absl::OkStatus();
  }

  absl::optional<Statement> get_observations_, get_attributes_;
  std::vector<Row> rows_;  // by series
  std::string bytes_;      // of all rows
  std::unordered_map<int64_t, Observation> attributes_;
  std::vector<int64_t> unfetched_;  // of attributes_
};

namespace {

// Series that are read one by one with their own runs.
constexpr int kSeriesReadAlone = 8;

constexpr char kSeriesColumns[] =
    "SELECT series, text, benchmark, metric, unit, hardware_id, branch ";

// Parses the benchmark of a key whose other fields are there. The text tells
// whether all of it is as it was.
absl::Status TakeBenchmark(absl::string_view benchmark, absl::string_view text,
                           SeriesKey* key) {
  const bool parsed = key->benchmark.ParseFromArray(
      benchmark.data(), static_cast<int>(benchmark.size()));
  if (!parsed || CanonicalText(*key) != text) {
    return absl::DataLossError("index: a series' key is not whole");
  }
  return absl::OkStatus();
}

// From a row of kSeriesColumns, without the benchmark.
SeriesKey RestOfKey(const Statement& get) {
  SeriesKey key;
  key.metric = std::string(get.Bytes(3));
  key.unit = std::string(get.Bytes(4));
  key.hardware_id = std::string(get.Bytes(5));
  key.branch = std::string(get.Bytes(6));
  return key;
}

absl::StatusOr<SeriesKey> KeyOf(const Statement& get) {
  SeriesKey key = RestOfKey(get);
  OPTRAIL_RETURN_IF_ERROR(TakeBenchmark(get.Bytes(2), get.Bytes(1), &key));
  return key;
}

// Hardware and branch are the same for all runs of a series.
bool TakesWholeSeries(const RunFilter& filter) {
  return filter.suite.empty() && filter.commit_prefix.empty() &&
         !filter.started_from_unix_ns && !filter.started_before_unix_ns;
}

}  // namespace

absl::StatusOr<Series> HistoryIndex::ReadSeriesOnce(absl::string_view text) {
  // One state of the index from here on.
  Transaction transaction(*db_);
  OPTRAIL_RETURN_IF_ERROR(transaction.Begin(db_->begin_reading()));
  OPTRAIL_ASSIGN_OR_RETURN(
      Statement get,
      db_->Prepare(absl::StrCat(kSeriesColumns, "FROM series WHERE text = ?")));
  OPTRAIL_ASSIGN_OR_RETURN(const bool found, get.With(text).Step());
  Series series;
  if (found) {
    OPTRAIL_ASSIGN_OR_RETURN(SeriesKey key, KeyOf(get));
    OPTRAIL_ASSIGN_OR_RETURN(
        series, ReadSeriesRow(get.Int(0), std::move(key), std::string(text)));
  }
  if (!series.points.empty()) return series;
  OPTRAIL_RETURN_IF_ERROR(ParseSeriesKey(text).status());
  return absl::NotFoundError(absl::StrCat("no series '", text, "' in ",
                                          history_.dir(),
                                          "; `optrail log series` lists "
                                          "them"));
}

absl::StatusOr<Series> HistoryIndex::ReadSeriesRow(int64_t row, SeriesKey key,
                                                   std::string text) {
  OPTRAIL_ASSIGN_OR_RETURN(SeriesReader reader, SeriesReader::Create(*db_));
  // The runs of all series are read once several have been asked for.
  if (++series_read_ <= kSeriesReadAlone) {
    OPTRAIL_ASSIGN_OR_RETURN(const PlacedRuns own, PlaceRunsOf(row));
    OPTRAIL_RETURN_IF_ERROR(reader.Fetch(row, row, own.places));
    return reader.Build(row, std::move(key), std::move(text), own.runs);
  }
  OPTRAIL_RETURN_IF_ERROR(LoadHeaders());
  if (!all_runs_.has_value()) all_runs_ = Place({});
  OPTRAIL_RETURN_IF_ERROR(reader.Fetch(row, row, all_runs_->places));
  return reader.Build(row, std::move(key), std::move(text), all_runs_->runs);
}

absl::StatusOr<std::unordered_map<int64_t, std::string>> HistoryIndex::LoadKept(
    absl::string_view table) {
  OPTRAIL_ASSIGN_OR_RETURN(
      Statement get,
      db_->Prepare(absl::StrCat("SELECT series, bytes FROM ", table)));
  std::unordered_map<int64_t, std::string> kept;
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool more, get.Step());
    if (!more) return kept;
    kept.emplace(get.Int(0), get.Bytes(1));
  }
}

absl::Status HistoryIndex::KeepFolds(
    const std::map<std::string, std::string>& folds) {
  return Keep("folds", folds);
}

absl::Status HistoryIndex::KeepDigests(
    const std::map<std::string, std::string>& digests) {
  return Keep("digests", digests);
}

absl::Status HistoryIndex::Keep(
    absl::string_view table, const std::map<std::string, std::string>& kept) {
  if (kept.empty() || read_only_ || path_.empty()) return absl::OkStatus();
  Transaction transaction(*db_);
  OPTRAIL_RETURN_IF_ERROR(transaction.Begin(db_->begin_writing()));
  OPTRAIL_ASSIGN_OR_RETURN(Statement get,
                           db_->Prepare("SELECT series, text FROM series"));
  OPTRAIL_ASSIGN_OR_RETURN(
      Statement put,
      db_->Prepare(absl::StrCat("INSERT INTO ", table,
                                " (series, bytes) VALUES (?, ?) "
                                "ON CONFLICT (series) DO UPDATE SET bytes = "
                                "excluded.bytes")));
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool more, get.Step());
    if (!more) break;
    const auto one = kept.find(std::string(get.Bytes(1)));
    if (one == kept.end()) continue;
    OPTRAIL_RETURN_IF_ERROR(put.With(get.Int(0), Blob{one->second}).Run());
  }
  get.Reset();
  return transaction.Commit();
}

absl::Status HistoryIndex::KeepJudgements(
    const std::map<std::string, KeptJudgement>& judgements) {
  if (!kept_by_store_) return absl::OkStatus();
  Transaction transaction(*db_);
  OPTRAIL_RETURN_IF_ERROR(transaction.Begin(db_->begin_writing()));
  OPTRAIL_ASSIGN_OR_RETURN(
      Statement get,
      db_->Prepare("SELECT series, text, coalesce(verdict, ''), "
                   "coalesce(changes::text, '') "
                   "FROM series LEFT JOIN judgements USING (series)"));
  OPTRAIL_ASSIGN_OR_RETURN(
      Statement put,
      db_->Prepare("INSERT INTO judgements (series, verdict, changes) "
                   "VALUES (?, ?, CAST(CAST(? AS text) AS json)) "
                   "ON CONFLICT (series) DO UPDATE SET "
                   "verdict = excluded.verdict, changes = excluded.changes, "
                   "judged = now()"));
  OPTRAIL_ASSIGN_OR_RETURN(
      Statement forget,
      db_->Prepare("DELETE FROM judgements WHERE series = ?"));
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool more, get.Step());
    if (!more) break;
    const auto now = judgements.find(std::string(get.Bytes(1)));
    if (now == judgements.end()) {
      if (get.Bytes(2).empty()) continue;
      OPTRAIL_RETURN_IF_ERROR(forget.With(get.Int(0)).Run());
    } else if (get.Bytes(2) != now->second.verdict ||
               get.Bytes(3) != now->second.changes) {
      OPTRAIL_RETURN_IF_ERROR(
          put.With(get.Int(0), now->second.verdict, now->second.changes).Run());
    }
  }
  get.Reset();
  return transaction.Commit();
}

absl::StatusOr<LoadedSeries> HistoryIndex::LoadSeriesOnce(
    const SeriesQuery& query) {
  Transaction transaction(*db_);
  OPTRAIL_RETURN_IF_ERROR(transaction.Begin(db_->begin_reading()));
  LoadedSeries loaded;
  OPTRAIL_RETURN_IF_ERROR(LoadHeaders());
  const PlacedRuns placed = Place(query.runs);
  for (int i = 0; i < placed.runs.size(); ++i) {
    loaded.runs.push_back(placed.runs.run(i));
  }
  std::unordered_map<int64_t, std::string> folds;
  if (TakesWholeSeries(query.runs)) {
    OPTRAIL_ASSIGN_OR_RETURN(folds, LoadKept("folds"));
    loaded.folds.emplace();
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      Statement get,
      db_->Prepare(absl::StrCat(kSeriesColumns, "FROM series ",
                                "WHERE (?1 = '' OR hardware_id = ?1) ",
                                "AND (?2 = '' OR branch = ?2) "
                                "ORDER BY series")));
  get.With(query.runs.hardware_id, query.runs.branch);
  struct Wanted {
    int64_t row;
    SeriesKey key;
    std::string text;
  };
  std::vector<Wanted> wanted;
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool more, get.Step());
    if (!more) break;
    OPTRAIL_ASSIGN_OR_RETURN(SeriesKey key, KeyOf(get));
    if (query.wanted && !query.wanted(key)) continue;
    wanted.push_back({get.Int(0), std::move(key), std::string(get.Bytes(1))});
  }
  get.Reset();
  OPTRAIL_ASSIGN_OR_RETURN(SeriesReader reader, SeriesReader::Create(*db_));
  for (size_t begin = 0, end = 0; begin < wanted.size(); begin = end) {
    end = EndOfGroup(begin, wanted.size(),
                     [&](size_t i) { return wanted[i].row; });
    OPTRAIL_RETURN_IF_ERROR(
        reader.Fetch(wanted[begin].row, wanted[end - 1].row, placed.places));
    std::vector<absl::StatusOr<Series>> built(end - begin);
    ParallelFor(static_cast<int64_t>(built.size()), /*threads=*/0,
                [&](int64_t i) {
                  Wanted& one = wanted[begin + i];
                  built[i] = reader.Build(one.row, std::move(one.key),
                                          std::move(one.text), placed.runs);
                });
    for (size_t i = 0; i < built.size(); ++i) {
      OPTRAIL_RETURN_IF_ERROR(built[i].status());
      if (built[i]->points.empty()) continue;
      const auto kept = folds.find(wanted[begin + i].row);
      if (kept != folds.end()) {
        loaded.folds->emplace(built[i]->text, std::move(kept->second));
      }
      loaded.series.push_back(*std::move(built[i]));
    }
  }
  std::sort(loaded.series.begin(), loaded.series.end(),
            [](const Series& a, const Series& b) { return a.text < b.text; });
  OPTRAIL_ASSIGN_OR_RETURN(loaded.bad_files, BadFiles());
  loaded.notices = notices_;
  return loaded;
}

class HistoryIndex::IndexScan : public SeriesScan {
 public:
  explicit IndexScan(HistoryIndex* index) : index_(index) {}

  absl::Status Begin() {
    OPTRAIL_RETURN_IF_ERROR(index_->LoadHeaders());
    PlacedRuns placed = index_->Place({});
    places_ = std::move(placed.places);
    runs_.emplace(std::move(placed.runs));
    run_rows_.resize(runs_->size());
    for (const auto& [row, place] : places_) run_rows_[place] = row;
    OPTRAIL_ASSIGN_OR_RETURN(auto digests, index_->LoadKept("digests"));
    OPTRAIL_ASSIGN_OR_RETURN(
        Statement get,
        index_->db_->Prepare(absl::StrCat(kSeriesColumns, "FROM series")));
    std::vector<std::string> benchmarks;
    while (true) {
      OPTRAIL_ASSIGN_OR_RETURN(const bool more, get.Step());
      if (!more) break;
      benchmarks.emplace_back(get.Bytes(2));
      ListedSeries listed = {get.Int(0), RestOfKey(get),
                             std::string(get.Bytes(1)), ""};
      const auto kept = digests.find(listed.row);
      if (kept != digests.end()) listed.digest = std::move(kept->second);
      series_.push_back(std::move(listed));
    }
    std::vector<absl::Status> statuses(series_.size());
    ParallelFor(
        static_cast<int64_t>(series_.size()), /*threads=*/0, [&](int64_t i) {
          statuses[i] =
              TakeBenchmark(benchmarks[i], series_[i].text, &series_[i].key);
        });
    for (const absl::Status& status : statuses) {
      OPTRAIL_RETURN_IF_ERROR(status);
    }
    std::sort(series_.begin(), series_.end(),
              [](const ListedSeries& a, const ListedSeries& b) {
                return a.text < b.text;
              });
    return absl::OkStatus();
  }

  absl::StatusOr<std::unordered_map<std::string, std::string>> ReadFolds()
      const override {
    OPTRAIL_ASSIGN_OR_RETURN(auto by_row, index_->LoadKept("folds"));
    std::unordered_map<std::string, std::string> folds;
    for (const ListedSeries& one : series_) {
      const auto kept = by_row.find(one.row);
      if (kept != by_row.end()) folds[one.text] = std::move(kept->second);
    }
    return folds;
  }

  absl::Status Read(
      const std::vector<size_t>& wanted,
      const std::function<void(size_t, Series)>& take) const override {
    std::vector<size_t> by_row = wanted;
    std::sort(by_row.begin(), by_row.end(), [&](size_t a, size_t b) {
      return series_[a].row < series_[b].row;
    });
    OPTRAIL_ASSIGN_OR_RETURN(SeriesReader reader,
                             SeriesReader::Create(*index_->db_));
    for (size_t begin = 0, end = 0; begin < by_row.size(); begin = end) {
      end = EndOfGroup(begin, by_row.size(),
                       [&](size_t i) { return series_[by_row[i]].row; });
      OPTRAIL_RETURN_IF_ERROR(reader.Fetch(
          series_[by_row[begin]].row, series_[by_row[end - 1]].row, places_));
      std::vector<absl::Status> statuses(end - begin);
      ParallelFor(
          static_cast<int64_t>(statuses.size()), /*threads=*/0, [&](int64_t i) {
            const size_t place = by_row[begin + i];
            const ListedSeries& one = series_[place];
            auto built = reader.Build(one.row, one.key, one.text, *runs_);
            statuses[i] = built.status();
            if (built.ok()) take(place, *std::move(built));
          });
      for (const absl::Status& status : statuses) {
        OPTRAIL_RETURN_IF_ERROR(status);
      }
    }
    return absl::OkStatus();
  }

 private:
  HistoryIndex* const index_;
  std::unordered_map<int64_t, int> places_;  // by row of the run
};

absl::Status HistoryIndex::Scan(
    const std::function<absl::Status(const SeriesScan&)>& use) {
  Transaction transaction(*db_);
  OPTRAIL_RETURN_IF_ERROR(transaction.Begin(db_->begin_reading()));
  // A shared database ends transactions that pause; judging between two reads
  // may take longer than that, on a loaded machine.
  if (kept_by_store_) {
    OPTRAIL_RETURN_IF_ERROR(db_->Execute(
        "SET LOCAL idle_in_transaction_session_timeout = '10min'"));
  } else {
    // It reads each page once, in order: a large cache is memory to touch.
    OPTRAIL_RETURN_IF_ERROR(db_->Execute("PRAGMA cache_size = -16384"));
  }
  IndexScan scan(this);
  OPTRAIL_RETURN_IF_ERROR(scan.Begin());
  return use(scan);
}

}  // namespace optrail::tracker
