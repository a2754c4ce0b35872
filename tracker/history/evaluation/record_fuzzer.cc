// Whatever the bytes of a history's file are, its readers answer and do not
// crash. The input is read twice: as the file, and as the body of a file whose
// checksum is right, which is how the decoder behind the checksum is reached.
//
//   bazel build --config=fuzz //tracker/history/evaluation:record_fuzzer
//   tar -C /tmp -xzf tracker/history/evaluation/record_corpus.tar.gz
//   bazel-bin/tracker/history/evaluation/record_fuzzer /tmp/record_corpus

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "google/protobuf/stubs/logging.h"
#include "tracker/history/record.h"
#include "tracker/series/series.h"
#include "tracker/series/series_key.h"

namespace optrail::tracker {
namespace {

void ReadAsRecord(absl::string_view bytes) {
  proto::Run run;
  const bool whole = DecodeRecord(bytes, &run).ok();
  proto::Run header;
  int results = 0;
  const bool listed = DecodeRecordWithout({proto::Run::kResultsFieldNumber},
                                          bytes, &header, &results)
                          .ok();
  // A header that is listed may still hide damage in its results.
  OPTRAIL_CHECK(listed || !whole);
  proto::Run rest;
  std::vector<absl::string_view> parts;
  const bool apart =
      DecodeRecordApart(proto::Run::kResultsFieldNumber, bytes, &rest, &parts)
          .ok();
  OPTRAIL_CHECK(apart == listed);
  if (whole) {
    OPTRAIL_CHECK(static_cast<int>(parts.size()) == run.results_size());
    for (int i = 0; i < run.results_size(); ++i) {
      proto::BenchmarkResult part;
      OPTRAIL_CHECK(DecodePart(parts[i], &part).ok());
      OPTRAIL_CHECK(part.SerializeAsString() ==
                    run.results(i).SerializeAsString());
    }
    // More where a field of that number is of another type, and so unknown.
    OPTRAIL_CHECK(results >= run.results_size());
    if (ValidateRun(run).ok()) {
      for (const Series& series : BuildSeries({&run})) {
        OPTRAIL_CHECK(series.points.size() == 1);
        const auto parsed = ParseSeriesKey(series.text);
        // Device kinds of a newer version have a text that does not parse.
        OPTRAIL_CHECK(!parsed.ok() || CanonicalText(*parsed) == series.text);
      }
    }
    // What is read can be written and read again.
    run.clear_checksum();
    proto::Run again;
    OPTRAIL_CHECK(DecodeRecord(EncodeRecord(run), &again).ok());
  }
  proto::Session session;
  if (DecodeRecord(bytes, &session).ok()) {
    (void)ValidateSession(session).ok();
  }
}

}  // namespace
}  // namespace optrail::tracker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Invalid UTF-8 is an error that it logs each time.
  google::protobuf::SetLogHandler(nullptr);
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  optrail::tracker::ReadAsRecord(input);
  optrail::tracker::ReadAsRecord(
      optrail::tracker::WithChecksum(std::string(input)));
  return 0;
}
