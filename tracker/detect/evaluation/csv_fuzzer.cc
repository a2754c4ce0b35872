// Any bytes are series or an error, and what is read keeps its promises.
//
//   bazel build --config=fuzz //tracker/detect/evaluation:csv_fuzzer
//   tar -C /tmp -xzf tracker/detect/evaluation/csv_corpus.tar.gz
//   bazel-bin/tracker/detect/evaluation/csv_fuzzer /tmp/csv_corpus

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "tracker/detect/csv.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto series = optrail::tracker::ParseSeriesCsv(
      absl::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!series.ok()) return 0;
  for (const optrail::tracker::CsvSeries& one : *series) {
    OPTRAIL_CHECK(!one.values.empty() && one.t.size() == one.values.size());
    for (size_t i = 0; i < one.values.size(); ++i) {
      OPTRAIL_CHECK(std::isfinite(one.values[i]));
      OPTRAIL_CHECK(i == 0 || one.t[i] > one.t[i - 1]);
    }
  }
  return 0;
}
