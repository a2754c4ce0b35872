#ifndef OPTRAIL_REPORTS_TESTING_STORED_PAGES_H_
#define OPTRAIL_REPORTS_TESTING_STORED_PAGES_H_

// For tests of reports/stored_series.h: the page of a history from digests and
// the page from all points, which must be the same.
//
//   class StoredSeriesTest : public ::testing::Test, protected StoredPages {};
//   TEST_F(StoredSeriesTest, ReadsNothingTwice) {
//     ExpectSame(Stored(history, {}), Fresh(history, {}));
//     EXPECT_EQ(read_, 10);

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "reports/build_report_data.h"
#include "reports/html_report.h"
#include "tracker/history/history.h"
#include "tracker/history/index/history_index.h"
#include "tracker/proto/run.pb.h"
#include "tracker/triage/triage.h"

namespace optrail::reports {

class StoredPages {
 protected:
  static constexpr int64_t kNowUnixNs = 4'000'000'000LL * 1'000'000'000;

  // Runs of five benchmarks on one machine, of which all are slower from a
  // commit on that is called `slow_id`.
  static std::vector<proto::Run> MakeSlower(int commits, int slow_from,
                                            const std::string& slow_id);
  // `series` is the place in `data`.
  static proto::TriageRecord AnswerTo(const ReportData& data, int series,
                                      proto::TriageKind kind,
                                      const proto::Commit& commit);

  // From all points.
  std::string Fresh(const tracker::History& history,
                    const std::vector<proto::TriageRecord>& answers) const;
  // From digests, which it keeps.
  std::string Stored(const tracker::History& history,
                     const std::vector<proto::TriageRecord>& answers,
                     const std::string& program = "this");
  // The same from an open index; `meanwhile` happens before they are kept.
  std::string StoredIn(
      tracker::HistoryIndex& index,
      const std::vector<proto::TriageRecord>& answers,
      const std::string& program = "this",
      const std::function<void()>& meanwhile = [] {});
  // The pages are long: where they part is enough.
  static void ExpectSame(const std::string& page, const std::string& fresh);

  // A page of few bytes leaves out all points but the fewest.
  static HtmlReportOptions Small();

  HtmlReportOptions page_ = Small();
  int64_t now_unix_ns_ = kNowUnixNs;
  // The last call of Stored leaves here the series whose points were read, all
  // series, and the page's data.
  int64_t read_ = 0, series_ = 0;
  ReportData data_;

 private:
  BuildOptions Build(const std::vector<proto::TriageRecord>& answers) const;
};

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_TESTING_STORED_PAGES_H_
