#include "ops/core/partial_check.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/process/parallel_for.h"
#include "base/random.h"
#include "ops/core/data_type.h"
#include "ops/core/pieces.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

// Deviations of the sum of a row's errors beyond which it is looked at.
constexpr double kDeviations = 8;
// A few rows may happen to have smaller errors than others.
constexpr double kLeastError = 0x1p-10;  // in tolerances

std::vector<double> Signs(int64_t columns, uint64_t seed) {
  std::vector<double> signs;
  signs.reserve(columns * kProjections);
  for (const uint16_t word : SignWords(columns, seed)) {
    for (int s = 0; s < kProjections; ++s) {
      signs.push_back((word >> s & 1) != 0 ? 1 : -1);
    }
  }
  return signs;
}

struct Row {
  double products[kProjections];
  double tolerance = 0;  // root of the sum of squares
};

Row Project(absl::Span<const double> values, const std::vector<double>& signs,
            Tolerance tolerance) {
  Row row;
  std::fill_n(row.products, kProjections, 0);
  double squares = 0;
  for (size_t j = 0; j < values.size(); ++j) {
    const double value = values[j];
    const double* const sign = &signs[j * kProjections];
    for (int s = 0; s < kProjections; ++s) row.products[s] += value * sign[s];
    const double element =
        tolerance.absolute + tolerance.relative * std::fabs(value);
    squares += element * element;
  }
  row.tolerance = std::sqrt(squares);
  return row;
}

// By how many of its tolerances a row's products differ from those expected;
// 0: within `limit`.
double OffBy(const Row& row, const double* expected, double limit) {
  double worst = 0;
  for (int s = 0; s < kProjections; ++s) {
    const double off = std::fabs(row.products[s] - expected[s]);
    // Also what is no number.
    if (off <= limit * row.tolerance) continue;
    const double by = off / row.tolerance;
    worst = std::max(worst, std::isnan(by) ? HUGE_VAL : by);
  }
  return worst;
}

// Adds what comparing `values`, the row `row` of the result, found.
void AddRow(proto::DataType type, const char* values, int64_t row,
            absl::Span<const double> expected, Tolerance tolerance,
            CompareResult* result) {
  CompareResult compared = Compare(type, values, expected, tolerance);
  if (!compared.ok()) {
    compared.first_wrong_index += row * static_cast<int64_t>(expected.size());
  }
  Take(compared, result);
}

// The sampled rows, one behind another.
CompareResult CompareSampled(proto::DataType type, const char* sampled,
                             const PartialExpectation& expected,
                             Tolerance tolerance) {
  const int64_t row_bytes = expected.columns * tuning::DataTypeBytes(type);
  CompareResult result;
  for (size_t i = 0; i < expected.sampled.size(); ++i) {
    AddRow(type, sampled + i * row_bytes, expected.sampled[i],
           absl::MakeConstSpan(expected.sampled_values)
               .subspan(i * expected.columns, expected.columns),
           tolerance, &result);
  }
  return result;
}

// Root mean square of the errors of the sampled rows, in tolerances.
double UsualError(proto::DataType type, const char* sampled,
                  const PartialExpectation& expected, Tolerance tolerance) {
  std::vector<double> got(expected.columns);
  double squares = 0;
  for (size_t i = 0; i < expected.sampled.size(); ++i) {
    DecodeValues(type, sampled, i * expected.columns, absl::MakeSpan(got));
    for (int64_t j = 0; j < expected.columns; ++j) {
      const double want = expected.sampled_values[i * expected.columns + j];
      const double element =
          tolerance.absolute + tolerance.relative * std::fabs(want);
      if (got[j] == want || !(element > 0)) continue;
      const double error = (got[j] - want) / element;
      squares += error * error;
    }
  }
  const auto count =
      static_cast<double>(expected.sampled.size() * expected.columns);
  return std::clamp(std::sqrt(squares / count), kLeastError, 1.0);
}

// How many of its tolerances a row's products may be off.
double LimitOf(proto::DataType type, const char* sampled,
               const PartialExpectation& expected, Tolerance tolerance) {
  return kDeviations * UsualError(type, sampled, expected, tolerance);
}

}  // namespace

std::vector<uint16_t> SignWords(int64_t columns, uint64_t seed) {
  static_assert(kProjections == 16);
  Rng rng(seed ^ 0x5eed0f516e5);
  std::vector<uint16_t> words(columns);
  for (uint16_t& word : words) word = static_cast<uint16_t>(rng());
  return words;
}

PartialExpectation PlanPartially(int64_t rows, int64_t columns, uint64_t seed,
                                 bool projects) {
  PartialExpectation plan;
  plan.rows = rows;
  plan.columns = columns;
  plan.seed = seed;
  const int64_t wanted =
      std::min<int64_t>(rows, projects ? kSampledRows : kSampledRowsAlone);
  std::set<int64_t> sampled = {0, rows - 1};
  Rng rng(seed ^ 0x0f0e5a3b1e);
  while (static_cast<int64_t>(sampled.size()) < wanted) {
    sampled.insert(rng.UniformInt(rows));
  }
  plan.sampled.assign(sampled.begin(), sampled.end());
  return plan;
}

PartialExpectation ExpectPartially(const PartialReference& reference,
                                   int64_t rows, int64_t columns,
                                   uint64_t seed) {
  std::vector<double> products =
      reference.Times(Signs(columns, seed), kProjections);
  OPTRAIL_CHECK(products.empty() ||
                static_cast<int64_t>(products.size()) == rows * kProjections)
      << "PartialReference::Times() gives " << products.size()
      << " values, expected " << rows << " * " << kProjections;
  PartialExpectation expected =
      PlanPartially(rows, columns, seed, !products.empty());
  expected.products = std::move(products);
  const auto rows_sampled = static_cast<int64_t>(expected.sampled.size());
  expected.sampled_values.resize(rows_sampled * columns);
  ParallelFor(rows_sampled, /*threads=*/0, [&](int64_t i) {
    const std::vector<double> values = reference.Row(expected.sampled[i]);
    OPTRAIL_CHECK(static_cast<int64_t>(values.size()) == columns)
        << "PartialReference::Row() gives " << values.size()
        << " values, expected " << columns;
    std::copy(values.begin(), values.end(),
              expected.sampled_values.begin() + i * columns);
  });
  return expected;
}

CompareResult ComparePartially(proto::DataType type, const void* data,
                               const PartialExpectation& expected,
                               Tolerance tolerance,
                               const PartialReference& reference) {
  const char* const values = static_cast<const char*>(data);
  const int64_t row_bytes = expected.columns * tuning::DataTypeBytes(type);
  std::string sampled;
  for (const int64_t row : expected.sampled) {
    sampled.append(values + row * row_bytes, row_bytes);
  }
  CompareResult result =
      CompareSampled(type, sampled.data(), expected, tolerance);
  if (!result.ok() || expected.products.empty()) return result;

  const double limit = LimitOf(type, sampled.data(), expected, tolerance);
  const std::vector<double> signs = Signs(expected.columns, expected.seed);
  std::vector<std::pair<double, int64_t>> suspects;  // by how suspect
  std::mutex mutex;
  const auto look = [&](int64_t begin, int64_t count) {
    std::vector<double> got(expected.columns);
    for (int64_t i = begin; i < begin + count; ++i) {
      DecodeValues(type, values, i * expected.columns, absl::MakeSpan(got));
      const double off = OffBy(Project(got, signs, tolerance),
                               &expected.products[i * kProjections], limit);
      if (off == 0) continue;
      const std::lock_guard<std::mutex> lock(mutex);
      suspects.emplace_back(-off, i);
    }
  };
  InPieces(expected.rows, look, /*piece=*/128);
  const size_t looked_at = std::min<size_t>(suspects.size(), kSuspectRows);
  std::partial_sort(suspects.begin(), suspects.begin() + looked_at,
                    suspects.end());
  for (size_t i = 0; i < looked_at; ++i) {
    const int64_t row = suspects[i].second;
    AddRow(type, values + row * row_bytes, row, reference.Row(row), tolerance,
           &result);
  }
  return result;
}

absl::optional<double> ErrorByParts(proto::DataType type, const void* sampled,
                                    absl::Span<const double> sums,
                                    const PartialExpectation& expected,
                                    Tolerance tolerance) {
  const char* const rows = static_cast<const char*>(sampled);
  const CompareResult compared =
      CompareSampled(type, rows, expected, tolerance);
  if (!compared.ok()) return absl::nullopt;
  const double limit = LimitOf(type, rows, expected, tolerance);
  for (int64_t i = 0; i < expected.rows; ++i) {
    const double* const of_row = &sums[i * (kProjections + 1)];
    Row row;
    std::copy_n(of_row, kProjections, row.products);
    row.tolerance = std::sqrt(of_row[kProjections]);
    if (OffBy(row, &expected.products[i * kProjections], limit) != 0) {
      return absl::nullopt;
    }
  }
  return compared.max_error_in_tolerances;
}

}  // namespace optrail::ops
