// Whatever lies in a history's triage folder, what people said is read, weighed
// and merged without a crash.
//
//   bazel build --config=fuzz //tracker/triage/evaluation:triage_fuzzer
//   tar -C /tmp -xzf tracker/triage/evaluation/triage_corpus.tar.gz
//   bazel-bin/tracker/triage/evaluation/triage_fuzzer /tmp/triage_corpus
//
// The input is read three times: as the bytes of one file, as the body of a
// file whose checksum is right, and as up to eight records (a byte of length
// before each) that get ids of their own, so that what weighs one against the
// other is reached.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/file/file.h"
#include "base/testing/fault_injecting_file_system.h"
#include "google/protobuf/stubs/logging.h"
#include "tracker/history/history.h"
#include "tracker/history/record.h"
#include "tracker/triage/triage.h"

namespace optrail::tracker {
namespace {

constexpr int kMostRecords = 8;
constexpr int kPoints = 6;
constexpr int64_t kNowUnixNs = 1'795'000'000LL * 1'000'000'000;

std::string IdOf(int i) {
  return absl::StrCat("20261120T10000", i, "Z-00000000000", i);
}

// Makes a series of points with and without a place in the history of commits.
Series MakeSeries() {
  Series series;
  series.key.benchmark.set_operator_name("a");
  series.key.metric = "time";
  series.key.unit = "ns";
  series.text = "a|time|ns|-|-";
  for (int i = 0; i < kPoints; ++i) {
    Point point;
    PointRuns runs;
    runs.commit.set_id(absl::StrCat("c", i));
    if (i % 2 == 0) runs.commit.set_first_parent_position(10 * i);
    point.runs = std::make_shared<const PointRuns>(runs);
    series.points.push_back(point);
  }
  return series;
}

// Reads the one file, and whatever it holds can be merged.
void ReadAsFile(absl::string_view bytes) {
  FaultInjectingFileSystem fs;
  const std::string dir = "h/triage/2026";
  OPTRAIL_CHECK(CreateDirectories(dir, &fs).ok());
  OPTRAIL_CHECK(
      WriteFileAtomically(JoinPath(dir, IdOf(0) + ".pb"), bytes, &fs).ok());
  const History history = *History::Open("h", &fs);
  const auto loaded = history.LoadTriage();
  OPTRAIL_CHECK(loaded.ok());
  OPTRAIL_CHECK(loaded->records.size() + loaded->bad_files.size() == 1);
  const auto verified = history.Verify();
  OPTRAIL_CHECK(verified.ok());
  OPTRAIL_CHECK(verified->triage_records ==
                static_cast<int64_t>(loaded->records.size()));
  const History other = *History::Open("other", &fs);
  const auto merged = other.MergeFrom(history);
  OPTRAIL_CHECK(merged.ok());
  OPTRAIL_CHECK(merged->copied == static_cast<int64_t>(loaded->records.size()));
}

void Weigh(const std::vector<proto::TriageRecord>& records) {
  static const Series* const series = new Series(MakeSeries());
  const TriageBook book(records, kNowUnixNs);
  // Records are merged in any order.
  const TriageBook reversed({records.rbegin(), records.rend()}, kNowUnixNs);
  OPTRAIL_CHECK(book.entries().size() == records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    const TriageBook::Entry& entry = book.entries()[i];
    OPTRAIL_CHECK(entry.record.record_id() ==
                  reversed.entries()[i].record.record_id());
    OPTRAIL_CHECK(entry.state == reversed.entries()[i].state);
    const auto found = book.Find(entry.record.record_id());
    OPTRAIL_CHECK(found.ok() && *found == &entry);
    (void)book.Find(entry.record.supersedes()).ok();
    (void)Covers(entry, *series);
    const absl::optional<int> place = PlaceOf(entry.record.commit(), *series);
    OPTRAIL_CHECK(!place || (*place >= 0 && *place < kPoints));
  }
  for (int i = 1; i < kPoints; ++i) {
    ChangePoint change;
    change.index = i;
    change.relative_change = i % 2 == 0 ? .05 : -.05;
    change.relative_change_low = change.relative_change - .01;
    change.relative_change_high = change.relative_change + .01;
    const Opinion opinion = book.OpinionOf(*series, change);
    OPTRAIL_CHECK((opinion.state == ChangeState::kNew) ==
                  opinion.record_id.empty());
    const Opinion again = reversed.OpinionOf(*series, change);
    OPTRAIL_CHECK(opinion.state == again.state &&
                  opinion.record_id == again.record_id &&
                  opinion.notes == again.notes);
  }
}

// Parses texts as somebody types them.
void ParseTexts(const proto::TriageRecord& record) {
  proto::TriageRecord scoped;
  if (SetScope(record.pattern(), &scoped).ok()) {
    OPTRAIL_CHECK(scoped.series().empty() != scoped.pattern().empty());
  }
  const auto effect = ParseEffect(record.text());
  OPTRAIL_CHECK(!effect.ok() || (std::isfinite(*effect) && *effect > -1));
  (void)ParseEndOfDay(record.text()).ok();
}

void ReadAsRecords(absl::string_view input) {
  FaultInjectingFileSystem fs;
  const History history = *History::Open("h", &fs);
  int count = 0;
  while (!input.empty() && count < kMostRecords) {
    const size_t size = static_cast<unsigned char>(input[0]);
    const absl::string_view body = input.substr(1, size);
    input.remove_prefix(std::min(input.size(), size + 1));
    proto::TriageRecord record;
    if (!record.ParseFromArray(body.data(), static_cast<int>(body.size()))) {
      continue;
    }
    ParseTexts(record);
    // A short name for the other records, so that they are taken back.
    if (record.supersedes().size() == 1) {
      record.set_supersedes(IdOf(record.supersedes()[0] & (kMostRecords - 1)));
    }
    record.set_record_id(IdOf(count));
    if (history.AppendTriage(record).ok()) ++count;
  }
  const auto loaded = history.LoadTriage();
  OPTRAIL_CHECK(loaded.ok() && loaded->bad_files.empty());
  OPTRAIL_CHECK(loaded->records.size() == static_cast<size_t>(count));
  Weigh(loaded->records);
}

}  // namespace
}  // namespace optrail::tracker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Invalid UTF-8 is an error that it logs each time.
  google::protobuf::SetLogHandler(nullptr);
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  optrail::tracker::ReadAsFile(input);
  optrail::tracker::ReadAsFile(
      optrail::tracker::WithChecksum(std::string(input)));
  optrail::tracker::ReadAsRecords(input);
  return 0;
}
