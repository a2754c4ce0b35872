#include "ops/core/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>

#include "ops/core/data_type.h"
#include "ops/core/pieces.h"

namespace optrail::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The largest error in tolerances; infinity where anything is not finite, which
// needs a closer look.
double WorstIfFinite(absl::Span<const double> got,
                     absl::Span<const double> want, Tolerance tolerance) {
  double worst = 0;
  bool finite = true;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error =
        std::fabs(got[i] - want[i]) /
        (tolerance.absolute + tolerance.relative * std::fabs(want[i]));
    finite &= error < kInfinity;
    worst = error > worst ? error : worst;
  }
  return finite ? worst : kInfinity;
}

}  // namespace

void Take(const CompareResult& other, CompareResult* result) {
  result->max_error_in_tolerances =
      std::max(result->max_error_in_tolerances, other.max_error_in_tolerances);
  if (other.wrong_count == 0) return;
  result->wrong_count += other.wrong_count;
  if (result->first_wrong_index >= 0 &&
      result->first_wrong_index < other.first_wrong_index) {
    return;
  }
  result->first_wrong_index = other.first_wrong_index;
  result->first_wrong_value = other.first_wrong_value;
  result->first_wrong_expected = other.first_wrong_expected;
}

CompareResult Compare(proto::DataType type, const void* values,
                      absl::Span<const double> expected, Tolerance tolerance) {
  CompareResult all;
  std::mutex mutex;
  InPieces(static_cast<int64_t>(expected.size()), [&](int64_t from,
                                                      int64_t count) {
    CompareResult mine;
    double piece[1024];
    for (int64_t begin = from; begin < from + count; begin += 1024) {
      const auto expected_piece = expected.subspan(
          begin, std::min<int64_t>(1024, from + count - begin));
      const auto got = absl::MakeSpan(piece, expected_piece.size());
      DecodeValues(type, values, begin, got);
      // Nearly always all is well, which vectors find out.
      if (const double worst = WorstIfFinite(got, expected_piece, tolerance);
          worst <= 1) {
        mine.max_error_in_tolerances =
            std::max(mine.max_error_in_tolerances, worst);
        continue;
      }
      for (size_t i = 0; i < got.size(); ++i) {
        const double want = expected_piece[i];
        // Covers equal infinities, whose difference is NaN.
        if (got[i] == want || (std::isnan(got[i]) && std::isnan(want))) {
          continue;
        }
        double error =
            std::fabs(got[i] - want) /
            (tolerance.absolute + tolerance.relative * std::fabs(want));
        // NaN here: one of the two is NaN, or an infinity over an infinity.
        if (!(error < kInfinity)) error = kInfinity;
        if (!std::isfinite(want)) error = kInfinity;
        mine.max_error_in_tolerances =
            std::max(mine.max_error_in_tolerances, error);
        if (error <= 1) continue;
        if (mine.wrong_count++ == 0) {
          mine.first_wrong_index = begin + static_cast<int64_t>(i);
          mine.first_wrong_value = got[i];
          mine.first_wrong_expected = want;
        }
      }
    }
    const std::lock_guard<std::mutex> lock(mutex);
    Take(mine, &all);
  });
  return all;
}

}  // namespace optrail::ops
