#ifndef OPTRAIL_SUITES_TUNE_BUCKET_PARTS_H_
#define OPTRAIL_SUITES_TUNE_BUCKET_PARTS_H_

// The parts into which tune_buckets.h cuts a range of shapes, as a table: a
// line for each bucket, and for each range that has none.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/text/table.h"
#include "tuning/proto/config.pb.h"
#include "tuning/store/bucket.h"

namespace optrail::suites {

struct BucketPart {
  explicit BucketPart(tuning::Bucket of) : range(std::move(of)) {}

  tuning::Bucket range;
  // `state` is "verified", "not verified" or "not reached".
  std::string task, state, why, config;
  double gain = 0;  // over the default, in the middle
  double loss = 0;  // the largest at a shape that was checked
  // Those of a range that was cut are counted with the first of its parts.
  int sessions = 0;
  int random_shapes = 0;       // for which it was verified
  bool each_is_known = false;  // it was verified at every shape that it has
};

// Returns all shapes of the range; none if they are more than kFewShapes.
inline constexpr size_t kFewShapes = 16;
std::vector<proto::Shape> FewShapes(const tuning::Bucket& range);

// How many shapes inside a range are drawn and checked.
int RandomShapes(const tuning::Bucket& range, int for_each_doubling);

// Orders the parts from `first` on by the sizes of their smallest shapes.
void SortParts(size_t first, std::vector<BucketPart>* parts);

std::string FormatParts(const std::vector<BucketPart>& parts,
                        OutputFormat format);

}  // namespace optrail::suites

#endif  // OPTRAIL_SUITES_TUNE_BUCKET_PARTS_H_
