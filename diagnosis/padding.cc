#include "diagnosis/padding.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "diagnosis/classes.h"
#include "ops/core/operator.h"

namespace optrail::diagnosis {
namespace {

// Fewer empty lanes cost little.
constexpr double kMuchPadding = 1.25;
// From so near to the roofline on there is little to find.
constexpr double kNear = .7;
// Results of the padded shape are compared with the reference, which is slow.
constexpr double kMostFlop = 4e9;
constexpr int kMostDims = 2;

// Says whether an operand of numbers ends with the dimension: its elements are
// neighbours in memory.
bool IsContiguous(const ops::Operator& op, const proto::Shape& shape,
                  const proto::Shape& padded) {
  const auto before = op.Operands(shape), after = op.Operands(padded);
  if (!before.ok() || !after.ok() || before->size() != after->size()) {
    return false;
  }
  for (size_t i = 0; i < before->size(); ++i) {
    const std::vector<int64_t>& a = (*before)[i].dims;
    const std::vector<int64_t>& b = (*after)[i].dims;
    if (!a.empty() && !b.empty() && a.back() != b.back()) return true;
  }
  return false;
}

// The shape with a short contiguous dimension rounded up to whole vectors;
// nullopt where it is none.
absl::optional<proto::Shape> Padded(const ops::Operator& op,
                                    const proto::Shape& shape, int dim,
                                    int64_t lanes) {
  const int64_t length = shape.dims(dim).value();
  const int64_t whole = (length + lanes - 1) / lanes * lanes;
  // Along a dimension of 1 nothing is vectorised.
  if (length < 2 || static_cast<double>(whole) < kMuchPadding * length) {
    return absl::nullopt;
  }
  proto::Shape padded = shape;
  padded.mutable_dims(dim)->set_value(whole);
  if (!ops::CheckShape(op, padded).ok() || op.Flop(padded) > kMostFlop ||
      !IsContiguous(op, shape, padded)) {
    return absl::nullopt;
  }
  return padded;
}

}  // namespace

void MeasurePadding(const Subject& subject, const Machine& machine,
                    const EvaluatorFor& evaluator_for,
                    const suites::EvaluationOptions& options,
                    Numbers* numbers) {
  const ops::Operator& op = *subject.entry.entry->op;
  const proto::Shape& shape = subject.entry.task.shape();
  const int64_t lanes = machine.hardware.simd_bits() / 32;
  const double reached = ReachedShare(*numbers);
  if (subject.entry.task.device_kind() != proto::CPU || lanes < 2 ||
      reached <= 0 || reached > kNear) {
    return;
  }
  const double time_ns = numbers->ValueOr("time_ns", 0);
  const double fixed = numbers->ValueOr("fixed_share", 0);
  int tried = 0;
  for (int i = 0; i < shape.dims_size() && tried < kMostDims; ++i) {
    const absl::optional<proto::Shape> padded = Padded(op, shape, i, lanes);
    if (!padded) continue;
    ++tried;
    suites::TaskEntry entry = subject.entry;
    *entry.task.mutable_shape() = *padded;
    const suites::Evaluation evaluation =
        evaluator_for(entry.task).Evaluate(subject.config, options);
    if (!evaluation.trial().has_time_ns()) continue;
    Numbers of_padded;
    AddRoofline(entry, machine, evaluation.trial().time_ns(), &of_padded);
    const double share = ReachedShare(of_padded);
    if (share <= 0) continue;
    // More work also spreads what every call repeats.
    const double work = std::max(op.Flop(*padded) / op.Flop(shape),
                                 op.MovedBytes(*padded) / op.MovedBytes(shape));
    const double with_fixed_ns = time_ns * (fixed + (1 - fixed) * work);
    const double explained =
        std::max(reached, share * evaluation.trial().time_ns() / with_fixed_ns);
    const double gain = std::max(0., 1 - explained / share);
    if (gain < numbers->ValueOr("padding_gain", -1)) continue;
    const int64_t length = shape.dims(i).value();
    const int64_t whole = padded->dims(i).value();
    numbers->Set("padding_gain", gain,
                 absl::StrFormat("%s=%d in place of %d takes %.2g of the time",
                                 shape.dims(i).name(), whole, length,
                                 evaluation.trial().time_ns() / time_ns));
    numbers->Set("padded_share", share, "measured ceilings");
    numbers->Set("padded_length", static_cast<double>(whole), "whole vectors");
    numbers->Set("short_length", static_cast<double>(length), "the shape");
  }
}

}  // namespace optrail::diagnosis
