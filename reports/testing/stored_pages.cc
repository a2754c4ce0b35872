#include "reports/testing/stored_pages.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "reports/stored_series.h"
#include "tracker/history/evaluation/generate_history.h"
#include "tracker/judge/evidence.h"
#include "tracker/judge/judge.h"

namespace optrail::reports {

using tracker::History;
using tracker::HistoryIndex;

HtmlReportOptions StoredPages::Small() {
  HtmlReportOptions options;
  options.max_bytes -= DataBytes("") - 600;
  return options;
}

BuildOptions StoredPages::Build(
    const std::vector<proto::TriageRecord>& answers) const {
  BuildOptions build;
  build.triage = answers;
  build.now_unix_ns = now_unix_ns_;
  // The runs of an alert that `optrail report` would explain.
  build.explain = [](const tracker::Change& change) {
    const tracker::Evidence evidence = tracker::EvidenceOf(change);
    std::vector<std::string> lines;
    for (const auto* level : {&evidence.before, &evidence.after}) {
      if (level->run_ids.empty()) continue;
      lines.push_back(absl::StrCat("explained by ", level->run_ids.front(),
                                   " to ", level->run_ids.back()));
    }
    return lines;
  };
  return build;
}

std::vector<proto::Run> StoredPages::MakeSlower(int commits, int slow_from,
                                                const std::string& slow_id) {
  tracker::GenerateOptions options;
  options.benchmarks = 5;
  options.hardware = 1;
  options.commits = commits;
  options.processes = 3;
  options.samples = 3;
  Rng rng(1);
  std::vector<proto::Run> runs;
  EXPECT_TRUE(
      tracker::GenerateRuns(options, [&](proto::Run run) -> absl::Status {
        const int commit = static_cast<int>(runs.size());
        // The generated levels shift on their own.
        for (proto::BenchmarkResult& result : *run.mutable_results()) {
          const double level = (commit >= slow_from ? 1.2e6 : 1e6) *
                               (1 + .02 * rng.UniformReal());
          for (auto& measurement : *result.mutable_measurements()) {
            for (auto& ns : *measurement.mutable_sample_ns()) {
              ns = static_cast<int64_t>(level * (1 + .002 * rng.UniformReal()));
            }
          }
        }
        if (commit == slow_from) run.mutable_commit()->set_id(slow_id);
        runs.push_back(std::move(run));
        return absl::OkStatus();
      }).ok());
  return runs;
}

std::string StoredPages::Fresh(
    const History& history,
    const std::vector<proto::TriageRecord>& answers) const {
  auto loaded = tracker::LoadSeriesFromFiles(history);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return WriteHtmlReport(
      BuildReportData(loaded->runs, std::move(loaded->series), {},
                      Build(answers)),
      page_);
}

std::string StoredPages::Stored(const History& history,
                                const std::vector<proto::TriageRecord>& answers,
                                const std::string& program) {
  auto index = HistoryIndex::Open(history);
  EXPECT_TRUE(index.ok()) << index.status();
  return StoredIn(**index, answers, program);
}

std::string StoredPages::StoredIn(
    HistoryIndex& index, const std::vector<proto::TriageRecord>& answers,
    const std::string& program, const std::function<void()>& meanwhile) {
  const tracker::TriageBook book(answers, now_unix_ns_);
  StoredOptions options;
  options.book = &book;
  options.data_bytes = DataBytes("Optrail report", page_);
  options.program = program;
  auto stored = LoadStoredSeries(index, options);
  EXPECT_TRUE(stored.ok()) << stored.status();
  read_ = stored->series_read;
  series_ = static_cast<int64_t>(stored->judged.all->size());
  meanwhile();
  KeepStoredSeries(index, *stored);
  data_ = BuildReportData(stored->runs, *stored->tables,
                          std::move(stored->judged), {}, Build(answers));
  return WriteHtmlReport(data_, page_);
}

void StoredPages::ExpectSame(const std::string& page,
                             const std::string& fresh) {
  if (page == fresh) return;
  size_t i = 0;
  while (i < page.size() && i < fresh.size() && page[i] == fresh[i]) ++i;
  const size_t begin = i < 200 ? 0 : i - 200;
  ADD_FAILURE() << "at " << i << " expected\n"
                << fresh.substr(begin, 400) << "\nbut it is\n"
                << page.substr(begin, 400);
}

proto::TriageRecord StoredPages::AnswerTo(const ReportData& data, int series,
                                          proto::TriageKind kind,
                                          const proto::Commit& commit) {
  proto::TriageRecord record;
  record.set_record_id(absl::StrCat("answer-", series));
  record.set_created_unix_ns(series + 1);
  record.set_kind(kind);
  record.set_series(data.series[series].of->text);
  record.set_text("the codec");
  *record.mutable_commit() = commit;
  return record;
}

}  // namespace optrail::reports
