#ifndef OPTRAIL_TUNING_STORE_BUCKET_H_
#define OPTRAIL_TUNING_STORE_BUCKET_H_

// A bucket is a range of shapes: each dimension has one value or all from a
// smallest to a largest one. A tuned config may name the bucket for which it
// was verified (TunedConfig.bucket).
//
//   OPTRAIL_ASSIGN_OR_RETURN(const Bucket bucket,
//                            Bucket::Parse("m=1..64,n=4096,k=4096/f32"));
//   if (bucket.Contains(shape)) Use(config);
//
// Attributes and data types are those of every shape inside.

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "base/random.h"
#include "tuning/proto/config.pb.h"

namespace optrail::tuning {

class Bucket {
 public:
  // InvalidArgument names the part that is no shape, or the dimension whose
  // range is empty.
  static absl::StatusOr<Bucket> Parse(absl::string_view text);
  // Returns whether a dimension of the text has a range, whatever else is
  // wrong.
  static bool IsRange(absl::string_view text);
  // The bucket of one shape.
  explicit Bucket(const proto::Shape& shape) : low_(shape), high_(shape) {}

  std::string Text() const;  // canonical; Parse() reads it back
  bool Contains(const proto::Shape& shape) const;
  bool Contains(const Bucket& other) const;

  // The shape in the middle: geometric means, rounded down.
  proto::Shape Centre() const;
  // Each range at one of its ends: the lowest shape first, no shape twice.
  std::vector<proto::Shape> Corners() const;
  // Uniform in the logarithm of each ranged dimension.
  proto::Shape RandomShape(Rng& rng) const;
  // The sum of log2(largest / smallest) over the dimensions.
  double Doublings() const;
  // Two halves in the dimension whose ends have the largest ratio, cut in the
  // middle; nullopt where that is less than `least_ratio`, and for a bucket of
  // one shape.
  absl::optional<std::pair<Bucket, Bucket>> Split(double least_ratio = 1) const;

 private:
  Bucket(proto::Shape low, proto::Shape high)
      : low_(std::move(low)), high_(std::move(high)) {}

  proto::Shape low_, high_;  // they differ in values of dimensions alone
};

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_STORE_BUCKET_H_
