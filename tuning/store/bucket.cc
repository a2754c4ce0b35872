#include "tuning/store/bucket.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "re2/re2.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

const RE2& RangePattern() {
  static const RE2& pattern = *new RE2("([0-9]+)\\.\\.([0-9]+)");
  return pattern;
}

// The text with one end of each range in its place.
std::string WithEnds(absl::string_view text, const char* end) {
  std::string shape(text);
  RE2::GlobalReplace(&shape, RangePattern(), end);
  return shape;
}

// The integer at `share` of the way from low to high, by the logarithm.
int64_t Between(int64_t low, int64_t high, double share) {
  const double size = static_cast<double>(low) *
                      std::pow(static_cast<double>(high) / low, share);
  return std::clamp(static_cast<int64_t>(size), low, high);
}

bool SameButSizes(const proto::Shape& a, const proto::Shape& b) {
  proto::Shape with_sizes = a;
  if (a.dims_size() != b.dims_size()) return false;
  for (int i = 0; i < a.dims_size(); ++i) {
    with_sizes.mutable_dims(i)->set_value(b.dims(i).value());
  }
  return CanonicalText(with_sizes) == CanonicalText(b);
}

}  // namespace

bool Bucket::IsRange(absl::string_view text) {
  return RE2::PartialMatch(std::string(text), RangePattern());
}

absl::StatusOr<Bucket> Bucket::Parse(absl::string_view text) {
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Shape low,
                           ParseShape(WithEnds(text, "\\1")));
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Shape high,
                           ParseShape(WithEnds(text, "\\2")));
  for (int i = 0; i < low.dims_size(); ++i) {
    if (low.dims(i).value() > high.dims(i).value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("dimension \"", low.dims(i).name(), "\" of \"", text,
                       "\" is ", low.dims(i).value(), "..",
                       high.dims(i).value(), ", expected SMALLEST..LARGEST"));
    }
  }
  return Bucket(low, high);
}

std::string Bucket::Text() const {
  std::string text;
  for (int i = 0; i < low_.dims_size(); ++i) {
    const proto::Dim& low = low_.dims(i);
    absl::StrAppend(&text, i > 0 ? "," : "", low.name(), "=", low.value());
    if (low.value() != high_.dims(i).value()) {
      absl::StrAppend(&text, "..", high_.dims(i).value());
    }
  }
  const std::string shape = CanonicalText(low_);
  return text + shape.substr(shape.find('/'));
}

bool Bucket::Contains(const proto::Shape& shape) const {
  if (!SameButSizes(low_, shape)) return false;
  for (int i = 0; i < shape.dims_size(); ++i) {
    const int64_t size = shape.dims(i).value();
    if (size < low_.dims(i).value() || size > high_.dims(i).value()) {
      return false;
    }
  }
  return true;
}

bool Bucket::Contains(const Bucket& other) const {
  return Contains(other.low_) && Contains(other.high_);
}

proto::Shape Bucket::Centre() const {
  proto::Shape shape = low_;
  for (int i = 0; i < shape.dims_size(); ++i) {
    shape.mutable_dims(i)->set_value(
        Between(low_.dims(i).value(), high_.dims(i).value(), 0.5));
  }
  return shape;
}

std::vector<proto::Shape> Bucket::Corners() const {
  std::vector<proto::Shape> corners = {low_};
  for (int i = 0; i < low_.dims_size(); ++i) {
    const int64_t size = high_.dims(i).value();
    if (size == low_.dims(i).value()) continue;
    for (size_t j = corners.size(); j-- > 0;) {
      proto::Shape corner = corners[j];
      corner.mutable_dims(i)->set_value(size);
      corners.push_back(std::move(corner));
    }
  }
  return corners;
}

proto::Shape Bucket::RandomShape(Rng& rng) const {
  proto::Shape shape = low_;
  for (int i = 0; i < shape.dims_size(); ++i) {
    const int64_t low = low_.dims(i).value(), high = high_.dims(i).value();
    if (low == high) continue;
    // Each integer holds the part of the line up to the next one.
    shape.mutable_dims(i)->set_value(
        std::min(high, Between(low, high + 1, rng.UniformReal())));
  }
  return shape;
}

double Bucket::Doublings() const {
  double doublings = 0;
  for (int i = 0; i < low_.dims_size(); ++i) {
    doublings += std::log2(static_cast<double>(high_.dims(i).value()) /
                           static_cast<double>(low_.dims(i).value()));
  }
  return doublings;
}

absl::optional<std::pair<Bucket, Bucket>> Bucket::Split(
    double least_ratio) const {
  int widest = 0;
  double ratio = 1;
  for (int i = 0; i < low_.dims_size(); ++i) {
    const double of_dim =
        static_cast<double>(high_.dims(i).value()) / low_.dims(i).value();
    if (of_dim > ratio) {
      ratio = of_dim;
      widest = i;
    }
  }
  if (ratio <= 1 || ratio < least_ratio) return absl::nullopt;
  const int64_t low = low_.dims(widest).value();
  const int64_t high = high_.dims(widest).value();
  const int64_t cut = std::min(high - 1, Between(low, high, 0.5));
  std::pair<Bucket, Bucket> halves(*this, *this);
  halves.first.high_.mutable_dims(widest)->set_value(cut);
  halves.second.low_.mutable_dims(widest)->set_value(cut + 1);
  return halves;
}

}  // namespace optrail::tuning
