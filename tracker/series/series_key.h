#ifndef OPTRAIL_TRACKER_SERIES_SERIES_KEY_H_
#define OPTRAIL_TRACKER_SERIES_SERIES_KEY_H_

// The canonical text of what is benchmarked and of what is compared over time.
//
//   benchmark  "matmul/cpu/m=512,n=512,k=512/f32/tuned/threads=1/hot"
//              "matmul/cpu/m=512,n=512,k=512/f32/named=mine/threads=1/hot"
//              "matmul/cpu:openblas/..."  another backend than the device's own
//              "conv2d/cuda/n=8,c=64/padding=1,stride=2/f16/..."   attributes
//              ".../tuned=joules/..."     tuned for something else than time
//              ".../hot/graph/devices=2"  how calls are launched, on how many
//              ".../hot/v2"               a version other than 0 comes last
//              "BM_Sort%2F1024"           imported: one component, its name
//   series     "<benchmark>|time|ns|amd-epyc-zen4-2c|main"
//
// The parts from "cpu:openblas" on are written only where a key has them, and
// are told apart by their form; keys without them have the text they always
// had. An absent component is "-". Characters that separate ('/', ',', '=',
// '+',
// '|'), '%', control characters and a lone "-" are written as %XX, so that
// different keys never share a text and every text parses back. Two shapes with
// the same dimensions in another order are different keys, as in
// tuning/proto/canonical.h.
//
// For people there is DisplayName(), which leaves imported names as they are.

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tracker/proto/run.pb.h"

namespace optrail::tracker {

// The key of a series, which is compared over time. The config that `tuned`
// chose is no part of it: retuning annotates a series and never splits it.
struct SeriesKey {
  proto::BenchmarkKey benchmark;
  std::string metric;  // "time" is wall time per call
  std::string unit;    // "ns"
  std::string hardware_id;
  std::string branch;
};

std::string CanonicalText(const proto::BenchmarkKey& key);
std::string CanonicalText(const SeriesKey& key);

// Accept exactly what CanonicalText produces; InvalidArgument names the
// component and what was expected.
absl::StatusOr<proto::BenchmarkKey> ParseBenchmarkKey(absl::string_view text);
absl::StatusOr<SeriesKey> ParseSeriesKey(absl::string_view text);

// For people, and what the patterns of a policy match: the canonical text of
// an operator's benchmark, the plain name of an imported one. Not unique.
std::string DisplayName(const proto::BenchmarkKey& key);

// For people: "default", "tuned", "tuned for joules", the name of a named
// config; "" of a benchmark without a selection.
std::string SelectionName(const proto::BenchmarkKey& key);

// The key without its version: results of different versions belong to the
// same benchmark but are not compared.
std::string TextWithoutVersion(const proto::BenchmarkKey& key);

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_SERIES_SERIES_KEY_H_
