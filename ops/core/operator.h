#ifndef OPTRAIL_OPS_CORE_OPERATOR_H_
#define OPTRAIL_OPS_CORE_OPERATOR_H_

// An Operator says what is computed: named dimensions, operands, a
// double-precision reference, FLOP and bytes. How it is computed is the affair
// of its backends (backend.h). See docs/guide/add_operator.md.
//
//   class AddOperator : public Operator { ... };
//   OPTRAIL_REGISTER_OPERATOR(AddOperator)       // add.cc
//   class AddCpu : public CpuKernel { ... };
//   OPTRAIL_REGISTER_CPU_KERNEL("add", AddCpu)   // add_cpu.cc
//
// Space, shapes, tuned configs and kernel ids come from the `operator` macro.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "ops/core/attributes.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

enum class Role { kInput, kOutput, kInOut };

// One tensor argument, dense and row-major.
struct OperandSpec {
  std::string name;
  proto::DataType data_type = proto::F32;
  std::vector<int64_t> dims;
  Role role = Role::kInput;
  // Random inputs are uniform in [low, high); or, for integer types, in
  // [0, index_limit).
  int64_t index_limit = 0;
  double low = -1;
  double high = 1;
  // What is sprinkled among them where results are checked, beside zeros of
  // both signs, denormals, the ends of the range and ties: large values, values
  // at which the computation changes its ways. Readings are taken without them.
  std::vector<double> hard_values = {};
  // Normal with mean 0 and deviation 1 in place of uniform: what arithmetic is
  // made of decides how much power a device takes, and so how fast it is.
  bool normal = false;
  // A .npy file whose values stand in place of random ones (input_file.h), a
  // path in the workspace. Results are checked with hard values among them.
  std::string file = {};
  // Integer types: an index is index_limit u^index_skew for u uniform in [0,
  // 1), so that above 1 small ones come more often, as users' favourites do.
  double index_skew = 1;
  // How many of its elements a call touches, where that depends on indices:
  // the mean over their distribution. Negative: all.
  double touched_elements = -1;

  int64_t elements() const;
  size_t size_bytes() const;
};

// A result is right if |result - reference| <= absolute + relative *
// |reference| for every element. NaN is right only where the reference is NaN.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

class Operator {
 public:
  virtual ~Operator() = default;

  virtual std::string name() const = 0;

  // Names of the dimensions, in the order in which shapes give them.
  virtual std::vector<std::string> dims() const = 0;

  // What shapes may say beside dimensions and types (attributes.h).
  virtual std::vector<AttributeSpec> attributes() const { return {}; }

  // Raised when the meaning of the computation changes: results of different
  // versions do not compare.
  virtual int version() const { return 0; }

  // The data types that shapes may have, each one type for all operands or one
  // per operand.
  virtual std::vector<std::vector<proto::DataType>> data_types() const {
    return {{proto::F32}};
  }

  // The arguments of every kernel, in order. InvalidArgument if the operator
  // does not support the shape's sizes. (Dimensions and data types have been
  // checked by then: see CheckShape.)
  virtual absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const = 0;

  // Per call; a fused multiply-add counts two.
  virtual double Flop(const proto::Shape& shape) const = 0;

  // Compulsory traffic per call: what is touched of every input read once, of
  // every output written once, what is updated in place both. Follows from
  // Operands(); 0 for a shape that those refuse.
  double MovedBytes(const proto::Shape& shape) const;

  // Computes the outputs in double precision. `operands` hold the values
  // before the call, converted to double, in the order of Operands(); the
  // result has one vector per output or in-out operand, in that order.
  virtual std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const = 0;

  // Parts of the reference, for results of which the whole takes long: checked
  // are then a few rows and random projections (partial_check.h). The operator
  // has one result; its rows are its last dimension.
  virtual bool HasPartialReference(const proto::Shape& shape) const {
    return false;
  }
  virtual std::vector<double> ReferenceRow(
      const proto::Shape& shape, absl::Span<const std::vector<double>> operands,
      int64_t row) const {
    return {};
  }
  // Each row times each column of `x` [last dimension][count], found without
  // the rows: for c = a * b that is a * (b * x). Empty: there is no such way,
  // and rows alone are compared.
  virtual std::vector<double> ReferenceTimes(
      const proto::Shape& shape, absl::Span<const std::vector<double>> operands,
      absl::Span<const double> x, int count) const {
    return {};
  }

  virtual Tolerance ToleranceFor(const proto::Shape& shape) const = 0;
};

// "f32", "f32+i32": a combination of data types, for people.
std::string TypesText(const std::vector<proto::DataType>& types);

// InvalidArgument if `shape` does not have exactly the operator's dimensions in
// its order and one of its data types, or attributes that it does not have or
// that have their default, or if Operands() refuses it.
absl::Status CheckShape(const Operator& op, const proto::Shape& shape);

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_OPERATOR_H_
