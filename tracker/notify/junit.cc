#include "tracker/notify/junit.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tracker/compare/row_table.h"
#include "tracker/compare/verdict.h"
#include "tracker/notify/xml.h"

namespace optrail::tracker {
namespace {

enum class Result { kPassed, kFailure, kError, kSkipped };

struct TestCase {
  std::string name;
  Result result = Result::kPassed;
  std::string type;     // the verdict
  std::string message;  // its reason
};

struct TestSuite {
  std::string name, hardware_id;
  std::vector<TestCase> cases;
};

Result ResultOf(const GateRow& row) {
  if (IsRed(row)) return Result::kFailure;
  if (IsUnclear(row)) return Result::kError;
  return row.row.verdict == Verdict::kCannotTell ||
                 row.row.verdict == Verdict::kSkipped
             ? Result::kSkipped
             : Result::kPassed;
}

std::vector<TestSuite> SuitesOf(const GateReport& report) {
  std::map<std::pair<std::string, std::string>, TestSuite> suites;
  bool passes = true;
  for (const GateRow& row : report.rows) {
    TestSuite& suite = suites[{row.suite, row.hardware_id}];
    suite.name = row.suite;
    suite.hardware_id = row.hardware_id;
    const Result result = ResultOf(row);
    passes = passes && result != Result::kFailure && result != Result::kError;
    suite.cases.push_back(
        {absl::StrCat(row.row.name, " (", row.row.metric, ")"), result,
         std::string(VerdictName(row.row.verdict)), row.row.reason});
  }
  std::vector<TestSuite> all;
  if (report.exit_code != 0 && passes) {
    all.push_back({"gate",
                   "",
                   {{"gate", Result::kError, GateReasonName(report.reason),
                     report.summary}}});
  }
  for (auto& [key, suite] : suites) all.push_back(std::move(suite));
  return all;
}

// The start of the suite's newest run of the candidate; for the gate itself,
// which has no hardware, the newest of all. Without one it is the time of the
// gate, since the schema asks for one.
std::string TimestampOf(const TestSuite& suite, const GateReport& report) {
  int64_t newest_ns = 0;
  for (const RunInfo& run : report.candidate_runs) {
    const bool is_of_suite = run.header.suite() == suite.name &&
                             run.header.hardware().id() == suite.hardware_id;
    if (!is_of_suite && !suite.hardware_id.empty()) continue;
    newest_ns = std::max(newest_ns, run.header.started_unix_ns());
  }
  return absl::FormatTime(
      "%Y-%m-%dT%H:%M:%S",
      newest_ns > 0 ? absl::FromUnixNanos(newest_ns) : absl::Now(),
      absl::UTCTimeZone());
}

int64_t Count(const std::vector<TestSuite>& suites, Result result) {
  int64_t count = 0;
  for (const TestSuite& suite : suites) {
    count += std::count_if(
        suite.cases.begin(), suite.cases.end(),
        [&](const TestCase& test) { return test.result == result; });
  }
  return count;
}

// tests="3" failures="1" errors="0" skipped="0" time="0"; a test's time is the
// machine's, which a gate does not spend.
std::string Counts(const std::vector<TestSuite>& suites) {
  size_t tests = 0;
  for (const TestSuite& suite : suites) tests += suite.cases.size();
  return absl::StrCat("tests=\"", tests, "\" failures=\"",
                      Count(suites, Result::kFailure), "\" errors=\"",
                      Count(suites, Result::kError), "\" skipped=\"",
                      Count(suites, Result::kSkipped), "\" time=\"0\"");
}

void AppendCase(const TestSuite& suite, const TestCase& test,
                std::string* xml) {
  const std::string class_name =
      suite.hardware_id.empty()
          ? suite.name
          : absl::StrCat(suite.name, ".", suite.hardware_id);
  absl::StrAppend(xml, "    <testcase classname=\"", EscapeForXml(class_name),
                  "\" name=\"", EscapeForXml(test.name), "\" time=\"0\"");
  if (test.result == Result::kPassed) {
    absl::StrAppend(xml, "/>\n");
    return;
  }
  const std::string message = EscapeForXml(test.message);
  if (test.result == Result::kSkipped) {
    absl::StrAppend(xml, "><skipped message=\"", message, "\"/></testcase>\n");
    return;
  }
  const char* element = test.result == Result::kFailure ? "failure" : "error";
  absl::StrAppend(xml, "><", element, " message=\"", message, "\" type=\"",
                  EscapeForXml(test.type), "\">", message, "</", element,
                  "></testcase>\n");
}

// What passes although it is no "unchanged", a line each.
std::string Remarks(const TestSuite& suite) {
  std::string text;
  for (const TestCase& test : suite.cases) {
    if (test.result != Result::kPassed ||
        test.type == VerdictName(Verdict::kUnchanged)) {
      continue;
    }
    absl::StrAppend(&text,
                    EscapeForXml(absl::StrCat(test.name, ": ", test.type, ": ",
                                              test.message)),
                    "\n");
  }
  return text;
}

}  // namespace

std::string GateJunit(const GateReport& report) {
  const std::vector<TestSuite> suites = SuitesOf(report);
  std::string xml = absl::StrCat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"",
      EscapeForXml(report.candidate), "\" ", Counts(suites), ">\n");
  for (size_t i = 0; i < suites.size(); ++i) {
    const TestSuite& suite = suites[i];
    absl::StrAppend(
        &xml, "  <testsuite id=\"", i, "\" package=\"optrail\" name=\"",
        EscapeForXml(suite.name), "\" hostname=\"",
        EscapeForXml(suite.hardware_id.empty() ? "unknown" : suite.hardware_id),
        "\" timestamp=\"", TimestampOf(suite, report), "\" ", Counts({suite}),
        ">\n    <properties/>\n");
    for (const TestCase& test : suite.cases) AppendCase(suite, test, &xml);
    absl::StrAppend(&xml, "    <system-out>", Remarks(suite),
                    "</system-out>\n    <system-err/>\n  </testsuite>\n");
  }
  absl::StrAppend(&xml, "</testsuites>\n");
  return xml;
}

}  // namespace optrail::tracker
