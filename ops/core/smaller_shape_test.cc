#include "ops/core/smaller_shape.h"

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

using Dims = std::vector<int64_t>;

// Work and operands are functions of the dimensions.
class Computed : public Operator {
 public:
  Computed(std::vector<std::string> names, double (*flop)(const Dims&),
           std::vector<Dims> (*operands)(const Dims&))
      : names_(std::move(names)), flop_(flop), operands_(operands) {}
  std::string name() const override { return "computed"; }
  std::vector<std::string> dims() const override { return names_; }
  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    std::vector<OperandSpec> specs;
    for (Dims& dims : operands_(Of(shape))) {
      specs.push_back({"x", proto::F32, std::move(dims), Role::kInput});
    }
    return specs;
  }
  double Flop(const proto::Shape& shape) const override {
    return flop_(Of(shape));
  }
  std::vector<std::vector<double>> Reference(
      const proto::Shape&,
      absl::Span<const std::vector<double>>) const override {
    return {};
  }
  Tolerance ToleranceFor(const proto::Shape&) const override { return {}; }

  // Returns the smaller shape in canonical text; "none" if there is none.
  std::string Smaller(const std::string& shape, double fraction) const {
    const auto smaller =
        SmallerShape(*this, *tuning::ParseShape(shape), fraction);
    return smaller ? tuning::CanonicalText(*smaller) : "none";
  }

 private:
  static Dims Of(const proto::Shape& shape) {
    Dims dims;
    for (const proto::Dim& dim : shape.dims()) dims.push_back(dim.value());
    return dims;
  }
  const std::vector<std::string> names_;
  double (*const flop_)(const Dims&);
  std::vector<Dims> (*const operands_)(const Dims&);
};

Computed Product() {
  return Computed(
      {"m", "n", "k"}, [](const Dims& d) { return 2.0 * d[0] * d[1] * d[2]; },
      [](const Dims& d) {
        return std::vector<Dims>{{d[0], d[2]}, {d[2], d[1]}, {d[0], d[1]}};
      });
}

TEST(SmallerShape, KeepsProportions) {
  const Computed product = Product();
  EXPECT_EQ(product.Smaller("m=2048,n=2048,k=2048/f32", 1. / 8),
            "m=1024,n=1024,k=1024/f32");
  EXPECT_EQ(product.Smaller("m=100000,n=64,k=512/f32", 1. / 16),
            "m=6250,n=64,k=512/f32");
}

TEST(SmallerShape, IsNoneWhereTooLittleIsLeft) {
  const Computed product = Product();
  EXPECT_EQ(product.Smaller("m=31,n=31,k=31/f32", 1. / 2), "none");
  EXPECT_EQ(product.Smaller("m=64,n=1,k=1/f32", 1. / 64), "none");
  EXPECT_EQ(product.Smaller("m=64,n=1,k=1/f32", 0), "none");
}

// Of a table little is read, and a sequence that attends to itself is four
// times as much work if it is twice as long.
TEST(SmallerShape, HalvesOnlyWhatIsHalfTheWork) {
  const Computed lookup(
      {"rows", "cols", "bags"}, [](const Dims& d) { return 1.0 * d[1] * d[2]; },
      [](const Dims& d) {
        return std::vector<Dims>{{d[0], d[1]}, {d[2], d[1]}};
      });
  EXPECT_EQ(lookup.Smaller("rows=1000000,cols=64,bags=2048/f32", 1. / 8),
            "rows=1000000,cols=64,bags=256/f32");
  const Computed attention(
      {"batch", "seq"}, [](const Dims& d) { return 1.0 * d[0] * d[1] * d[1]; },
      [](const Dims& d) {
        return std::vector<Dims>{{d[0], d[1]}};
      });
  EXPECT_EQ(attention.Smaller("batch=64,seq=4096/f32", 1. / 4),
            "batch=16,seq=4096/f32");
  EXPECT_EQ(attention.Smaller("batch=8,seq=4096/f32", 1. / 4), "none");
}

TEST(SmallerShape, GoesByBytesWhereNothingIsComputed) {
  const Computed copy(
      {"rows", "cols"}, [](const Dims&) { return 0.0; },
      [](const Dims& d) {
        return std::vector<Dims>{{d[0], d[1]}, {d[0], d[1]}};
      });
  EXPECT_EQ(copy.Smaller("rows=65536,cols=1024/f32", 1. / 32),
            "rows=2048,cols=1024/f32");
}

}  // namespace
}  // namespace optrail::ops
