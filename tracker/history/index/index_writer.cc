#include "tracker/history/index/index_writer.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/stats/statistics.h"
#include "base/status_macros.h"
#include "tracker/history/index/index_rows.h"
#include "tracker/history/record.h"

namespace optrail::tracker {
namespace {

// The number in the first column of the row that `statement` returns.
absl::StatusOr<int64_t> RunForRow(Statement& statement) {
  OPTRAIL_ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return absl::InternalError("index: a row was not added");
  const int64_t row = statement.Int(0);
  statement.Reset();
  return row;
}

}  // namespace

absl::StatusOr<IndexWriter> IndexWriter::Create(Database& db,
                                                const char* count_runs) {
  IndexWriter writer;
  const std::pair<absl::optional<Statement>*, const char*> statements[] = {
      {&writer.add_run_,
       "INSERT INTO runs (path, result_count, started_unix_ns, commit_id, "
       "position, header) VALUES (?, ?, ?, ?, ?, ?) RETURNING run"},
      {&writer.find_series_, "SELECT series FROM series WHERE text = ?"},
      {&writer.has_series_, "SELECT 1 FROM series WHERE series = ?"},
      {&writer.add_series_,
       "INSERT INTO series (text, benchmark, metric, unit, hardware_id, "
       "branch) VALUES (?, ?, ?, ?, ?, ?) RETURNING series"},
      {&writer.find_attributes_,
       "SELECT attributes FROM attributes WHERE bytes = ?"},
      {&writer.add_attributes_,
       "INSERT INTO attributes (bytes) VALUES (?) RETURNING attributes"},
  };
  for (const auto& [statement, sql] : statements) {
    OPTRAIL_ASSIGN_OR_RETURN(*statement, db.Prepare(sql));
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      writer.add_observation_,
      db.PrepareInsert(
          "observations",
          "series, run, ordinal, attributes, value, outcome, bytes"));
  if (count_runs != nullptr) {
    OPTRAIL_ASSIGN_OR_RETURN(writer.count_runs_, db.Prepare(count_runs));
  }
  return writer;
}

absl::StatusOr<bool> IndexWriter::IsCurrent() {
  // Attributes are remembered with series alone.
  if (series_.empty()) return true;
  OPTRAIL_ASSIGN_OR_RETURN(const bool is_there,
                           has_series_->With(series_.begin()->second).Step());
  has_series_->Reset();
  return is_there;
}

absl::StatusOr<int64_t> IndexWriter::AddRunRow(const std::string& path,
                                               const proto::Run& header,
                                               int result_count) {
  const std::string bytes = EncodeRecord(header);
  const proto::Commit& commit = header.commit();
  add_run_->With(path, result_count, int64_t{header.started_unix_ns()},
                 commit.id(), int64_t{commit.first_parent_position()},
                 Blob{bytes});
  if (!commit.has_first_parent_position()) {
    add_run_->With(path, result_count, int64_t{header.started_unix_ns()},
                   commit.id(), nullptr, Blob{bytes});
  }
  return RunForRow(*add_run_);
}

absl::Status IndexWriter::AddRun(const std::string& path, proto::Run run) {
  google::protobuf::RepeatedPtrField<proto::BenchmarkResult> results;
  results.Swap(run.mutable_results());
  run.clear_checksum();
  OPTRAIL_ASSIGN_OR_RETURN(const int64_t row,
                           AddRunRow(path, run, results.size()));
  std::unordered_set<int64_t> seen;
  for (int i = 0; i < results.size(); ++i) {
    const std::string benchmark = results[i].key().SerializeAsString();
    for (const Observation& observation : Observe(results[i])) {
      OPTRAIL_ASSIGN_OR_RETURN(
          const int64_t series,
          SeriesRow(results[i].key(), benchmark, observation.metric, run));
      OPTRAIL_RETURN_IF_ERROR(AddObservation(series, row, i, observation));
      if (count_runs_.has_value() && seen.insert(series).second) {
        ++runs_of_series_[series];
      }
    }
  }
  return absl::OkStatus();
}

// Once for all runs of a transaction, and not for each observation.
absl::Status IndexWriter::Finish() {
  if (!count_runs_.has_value()) return absl::OkStatus();
  for (const auto& [series, runs] : runs_of_series_) {
    OPTRAIL_RETURN_IF_ERROR(count_runs_->With(runs, series).Run());
  }
  runs_of_series_.clear();
  return absl::OkStatus();
}

absl::StatusOr<int64_t> IndexWriter::SeriesRow(
    const proto::BenchmarkKey& benchmark, const std::string& benchmark_bytes,
    const MetricInfo& metric, const proto::Run& run) {
  std::string parts;
  for (const std::string* part :
       {&metric.metric, &metric.unit, &run.hardware().id(),
        &run.commit().branch()}) {
    absl::StrAppend(&parts, part->size(), ":", *part);
  }
  parts += benchmark_bytes;
  const auto known = series_by_parts_.find(parts);
  if (known != series_by_parts_.end()) return known->second;
  OPTRAIL_ASSIGN_OR_RETURN(
      const int64_t row,
      SeriesRow(SeriesKey{benchmark, metric.metric, metric.unit,
                          run.hardware().id(), run.commit().branch()}));
  series_by_parts_.emplace(std::move(parts), row);
  return row;
}

// The row of what `find` looks for by `key`, or `add` puts there.
template <typename Key, typename Add>
absl::StatusOr<int64_t> IndexWriter::RowOf(
    std::unordered_map<std::string, int64_t>& rows, const std::string& text,
    const Key& key, Statement& find, const Add& add) {
  const auto [known, is_new] = rows.try_emplace(text, 0);
  if (!is_new) return known->second;
  OPTRAIL_ASSIGN_OR_RETURN(const bool found, find.With(key).Step());
  if (found) known->second = find.Int(0);
  find.Reset();
  if (!found) {
    OPTRAIL_ASSIGN_OR_RETURN(known->second, add());
  }
  return known->second;
}

absl::StatusOr<int64_t> IndexWriter::SeriesRow(const SeriesKey& key) {
  const std::string text = CanonicalText(key);
  return RowOf(series_, text, text, *find_series_, [&] {
    const std::string benchmark = key.benchmark.SerializeAsString();
    return RunForRow(add_series_->With(text, Blob{benchmark}, key.metric,
                                       key.unit, key.hardware_id, key.branch));
  });
}

absl::StatusOr<int64_t> IndexWriter::AttributesRow(
    const Observation& observation) {
  const std::string bytes = EncodeAttributes(observation);
  const Blob blob = {bytes};
  return RowOf(attributes_, bytes, blob, *find_attributes_,
               [&] { return RunForRow(add_attributes_->With(blob)); });
}

absl::Status IndexWriter::AddObservation(int64_t series, int64_t run,
                                         int ordinal,
                                         const Observation& observation) {
  OPTRAIL_ASSIGN_OR_RETURN(const int64_t attributes,
                           AttributesRow(observation));
  const std::string bytes = EncodeObservation(observation);
  std::vector<double> values;
  for (const ProcessReading& process : observation.processes) {
    values.push_back(process.value);
  }
  const auto outcome = static_cast<int64_t>(observation.outcome);
  if (values.empty()) {
    add_observation_->With(series, run, ordinal, attributes, nullptr, outcome,
                           Blob{bytes});
  } else {
    add_observation_->With(series, run, ordinal, attributes, Median(values),
                           outcome, Blob{bytes});
  }
  return add_observation_->Run();
}

}  // namespace optrail::tracker
