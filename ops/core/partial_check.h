#ifndef OPTRAIL_OPS_CORE_PARTIAL_CHECK_H_
#define OPTRAIL_OPS_CORE_PARTIAL_CHECK_H_

// Whether a large result is right, at a small part of what computing it costs:
// what Compare() is for whole references, this is for operators that offer
// parts of theirs (Operator::HasPartialReference).
//
//   const PartialExpectation expected = ExpectPartially(reference, 4096, 4096,
//                                                       seed);
//   const CompareResult compared =
//       ComparePartially(type, values, expected, tolerance, reference);
//
// 1. Some rows, the first and the last among them, are compared element by
//    element. They also show how large the errors of a right result are.
// 2. Every row is multiplied with kProjections random vectors of +1 and -1, and
//    so is the reference, which needs no row for it (Freivalds, "Probabilistic
//    machines can use less running time", 1977). Rows whose products differ by
//    more than such errors add up to are computed anew and compared element by
//    element; that alone decides, so that a right result is never refused.
//
// What is missed, with errors of right elements of r tolerances (root mean
// square), tolerances t_j of a row's elements and T = 16 r sqrt(sum t_j^2):
//   - one wrong element of a row: never, if it is off by more than T;
//   - several wrong ones that are each off by more than T: at most 2^-16 a row,
//     since at most half of all signs bring their sum near nothing
//     (Littlewood and Offord, 1943; Erdos, 1945);
//   - what is off by less than T and more than a tolerance, in a share f of all
//     rows: (1 - f)^8, by the rows of step 1.
// docs/method/reference_checks.md has measured rates. The vectors follow from
// the seed of the inputs: other inputs, other vectors.

#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "ops/core/compare.h"
#include "ops/core/operator.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

inline constexpr int kProjections = 16;
// Rows that are compared element by element; all of a small result.
inline constexpr int kSampledRows = 8;
// The number of sampled rows when rows cannot be projected.
inline constexpr int kSampledRowsAlone = 64;
// Of those that look wrong, so many are looked at, the worst first.
inline constexpr int kSuspectRows = 16;

// Computes parts of a result that is a matrix. Thread-safe.
class PartialReference {
 public:
  virtual ~PartialReference() = default;
  virtual std::vector<double> Row(int64_t row) const = 0;
  // The matrix times `x` [columns][count]; empty: rows cannot be projected.
  virtual std::vector<double> Times(absl::Span<const double> x,
                                    int count) const = 0;
};

struct PartialExpectation {
  int64_t rows = 0;
  int64_t columns = 0;
  uint64_t seed = 0;
  // The product of each row with each vector; empty: rows cannot be projected.
  std::vector<double> products;
  std::vector<int64_t> sampled;  // rows, ascending
  std::vector<double> sampled_values;
};

// Chooses the sampled rows, from sizes and seed alone.
PartialExpectation PlanPartially(int64_t rows, int64_t columns, uint64_t seed,
                                 bool projects);

// With everything that the reference has to compute.
PartialExpectation ExpectPartially(const PartialReference& reference,
                                   int64_t rows, int64_t columns,
                                   uint64_t seed);

// The vectors of +1 and -1: a word for each column, whose bit s is set where
// vector s has +1.
std::vector<uint16_t> SignWords(int64_t columns, uint64_t seed);

// The same for a result that lies where it is slow to read, by its sampled
// rows, one behind another, and kProjections + 1 sums of each row: its products
// with the vectors, and the squares of its elements' tolerances. The largest
// error of the sampled rows; nullopt: it looks wrong, which ComparePartially
// decides. Needs products.
absl::optional<double> ErrorByParts(proto::DataType type, const void* sampled,
                                    absl::Span<const double> sums,
                                    const PartialExpectation& expected,
                                    Tolerance tolerance);

// `values`: rows * columns elements of `type`. Counts of wrong elements are of
// the rows that were compared element by element. `reference` is asked for rows
// that look wrong.
CompareResult ComparePartially(proto::DataType type, const void* values,
                               const PartialExpectation& expected,
                               Tolerance tolerance,
                               const PartialReference& reference);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_PARTIAL_CHECK_H_
