// How the index answers with whole series.

#include <algorithm>
#include <deque>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tracker/history/index/history_index.h"
#include "tracker/history/index/index.pb.h"
#include "tracker/history/index/index_rows.h"
#include "tracker/history/record.h"
#include "tracker/series/series_key.h"

namespace optrail::tracker {

// Reads series one after another; lives within one transaction, so that all
// are of one state of the index.
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
        db.Prepare("SELECT bytes FROM attributes WHERE attributes = ?"));
    return reader;
  }

  // Asks for the series of the rows [first, last], which Read then takes in
  // ascending order. Neighbours together cost PostgreSQL little more than one:
  // they lie on the same pages, run by run.
  absl::Status Begin(int64_t first, int64_t last) {
    get_observations_->Reset();
    get_observations_->With(first, last);
    OPTRAIL_ASSIGN_OR_RETURN(more_, get_observations_->Step());
    return absl::OkStatus();
  }

  // The series of that row, of the runs that have a place; without points if
  // there are none.
  absl::StatusOr<Series> Read(int64_t row, SeriesKey key, std::string text,
                              const PlacedRuns& placed) {
    OPTRAIL_RETURN_IF_ERROR(ReadRows(row, placed.places));
    std::vector<int> order(count_);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [this](int a, int b) {
      return rows_[a].place < rows_[b].place;
    });
    SeriesBuilder builder(std::move(key), std::move(text));
    Observation observation;
    int64_t attributes = kNoAttributes;
    for (const int i : order) {
      if (rows_[i].attributes != attributes) {
        attributes = rows_[i].attributes;
        OPTRAIL_ASSIGN_OR_RETURN(const Observation* const known,
                                 Attributes(attributes));
        observation = *known;
      }
      OPTRAIL_RETURN_IF_ERROR(SetObservation(rows_[i].stored, &observation));
      builder.Add(placed.runs, rows_[i].place, observation);
    }
    return builder.Take();
  }

 private:
  static constexpr int64_t kNoAttributes = -1;

  struct Row {
    int place = 0;
    int64_t attributes = 0;
    proto::IndexedObservation stored;
  };

  // The first `count_` of `rows_`, whose memory is used again and again.
  absl::Status ReadRows(int64_t series,
                        const std::unordered_map<int64_t, int>& places) {
    count_ = 0;
    while (more_ && get_observations_->Int(0) <= series) {
      if (get_observations_->Int(0) == series) {
        OPTRAIL_RETURN_IF_ERROR(TakeRow(places));
      }
      OPTRAIL_ASSIGN_OR_RETURN(more_, get_observations_->Step());
    }
    return absl::OkStatus();
  }

  absl::Status TakeRow(const std::unordered_map<int64_t, int>& places) {
    const auto place = places.find(get_observations_->Int(1));
    if (place == places.end()) {
      return absl::DataLossError("index: a run is missing");
    }
    if (place->second == kNoPlace) return absl::OkStatus();
    if (count_ == rows_.size()) rows_.emplace_back();
    Row& row = rows_[count_++];
    row.place = place->second;
    row.attributes = get_observations_->Int(2);
    return DecodeRecord(get_observations_->Bytes(3), &row.stored);
  }

  absl::StatusOr<const Observation*> Attributes(int64_t row) {
    const auto [known, is_new] = attributes_.try_emplace(row);
    if (is_new) {
      OPTRAIL_ASSIGN_OR_RETURN(const bool found,
                               get_attributes_->With(row).Step());
      if (!found) return absl::DataLossError("index: attributes are missing");
      OPTRAIL_RETURN_IF_ERROR(
          DecodeAttributes(get_attributes_->Bytes(0), &known->second));
      get_attributes_->Reset();
    }
    return &known->second;
  }

  absl::optional<Statement> get_observations_, get_attributes_;
  bool more_ = false;  // get_observations_ stands on a row
  std::deque<Row> rows_;
  size_t count_ = 0;
  std::unordered_map<int64_t, Observation> attributes_;
};

namespace {

// Series that are asked for together, as far as few that are not wanted lie
// between them: a few megabytes.
constexpr size_t kSeriesTogether = 64;
constexpr int64_t kFarthestTogether = 2;

constexpr char kSeriesColumns[] =
    "SELECT series, text, benchmark, metric, unit, hardware_id, branch ";

// From a row of kSeriesColumns. The text tells whether the rest is as it was.
absl::StatusOr<SeriesKey> KeyOf(const Statement& get) {
  SeriesKey key;
  const absl::string_view benchmark = get.Bytes(2);
  const bool parsed = key.benchmark.ParseFromArray(
      benchmark.data(), static_cast<int>(benchmark.size()));
  key.metric = std::string(get.Bytes(3));
  key.unit = std::string(get.Bytes(4));
  key.hardware_id = std::string(get.Bytes(5));
  key.branch = std::string(get.Bytes(6));
  if (!parsed || CanonicalText(key) != get.Bytes(1)) {
    return absl::DataLossError("index: a series' key is not whole");
  }
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
      db_->Prepare(absl::StrCat(kSeriesColumns, "FROM series WHERE text = ? ",
                                "AND series.runs > 0")));
  OPTRAIL_ASSIGN_OR_RETURN(const bool found, get.With(text).Step());
  if (!found) {
    OPTRAIL_RETURN_IF_ERROR(ParseSeriesKey(text).status());
    return absl::NotFoundError(absl::StrCat("no series '", text, "' in ",
                                            history_.dir(),
                                            "; `optrail log series` lists "
                                            "them"));
  }
  OPTRAIL_RETURN_IF_ERROR(LoadHeaders());
  if (!all_runs_.has_value()) all_runs_ = Place({});
  OPTRAIL_ASSIGN_OR_RETURN(SeriesKey key, KeyOf(get));
  OPTRAIL_ASSIGN_OR_RETURN(SeriesReader reader, SeriesReader::Create(*db_));
  OPTRAIL_RETURN_IF_ERROR(reader.Begin(get.Int(0), get.Int(0)));
  return reader.Read(get.Int(0), std::move(key), std::string(text), *all_runs_);
}

absl::StatusOr<std::unordered_map<int64_t, std::string>>
HistoryIndex::LoadFolds() {
  OPTRAIL_ASSIGN_OR_RETURN(Statement get,
                           db_->Prepare("SELECT series, bytes FROM folds"));
  std::unordered_map<int64_t, std::string> folds;
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool more, get.Step());
    if (!more) return folds;
    folds.emplace(get.Int(0), get.Bytes(1));
  }
}

absl::Status HistoryIndex::KeepFolds(
    const std::map<std::string, std::string>& folds) {
  if (read_only_ || path_.empty()) return absl::OkStatus();
  Transaction transaction(*db_);
  OPTRAIL_RETURN_IF_ERROR(transaction.Begin(db_->begin_writing()));
  OPTRAIL_ASSIGN_OR_RETURN(Statement get,
                           db_->Prepare("SELECT series, text FROM series"));
  OPTRAIL_ASSIGN_OR_RETURN(
      Statement put,
      db_->Prepare("INSERT INTO folds (series, bytes) VALUES (?, ?) "
                   "ON CONFLICT (series) DO UPDATE SET bytes = "
                   "excluded.bytes"));
  while (true) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool more, get.Step());
    if (!more) break;
    const auto kept = folds.find(std::string(get.Bytes(1)));
    if (kept == folds.end()) continue;
    OPTRAIL_RETURN_IF_ERROR(put.With(get.Int(0), Blob{kept->second}).Run());
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
    OPTRAIL_ASSIGN_OR_RETURN(folds, LoadFolds());
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
  size_t end = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (i == end) {
      end = i + 1;
      while (end < wanted.size() && end - i < kSeriesTogether &&
             wanted[end].row - wanted[end - 1].row <= kFarthestTogether) {
        ++end;
      }
      OPTRAIL_RETURN_IF_ERROR(reader.Begin(wanted[i].row, wanted[end - 1].row));
    }
    OPTRAIL_ASSIGN_OR_RETURN(
        Series series, reader.Read(wanted[i].row, std::move(wanted[i].key),
                                   std::move(wanted[i].text), placed));
    if (series.points.empty()) continue;
    const auto kept = folds.find(wanted[i].row);
    if (kept != folds.end()) {
      loaded.folds->emplace(series.text, std::move(kept->second));
    }
    loaded.series.push_back(std::move(series));
  }
  std::sort(loaded.series.begin(), loaded.series.end(),
            [](const Series& a, const Series& b) { return a.text < b.text; });
  OPTRAIL_ASSIGN_OR_RETURN(loaded.bad_files, BadFiles());
  loaded.notices = notices_;
  return loaded;
}

}  // namespace optrail::tracker
