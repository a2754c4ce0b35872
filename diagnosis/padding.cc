#include "diagnosis/padding.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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
constexpr double kMostBytes = 256 << 20;
constexpr int kMostDims = 2;
// Threads of a CUDA warp, which execute an instruction together.
constexpr int64_t kWarp = 32;

// Values of 32 bits that an instruction computes at most.
int64_t LanesOf(const proto::Hardware& hardware) {
  return hardware.device_kind() == proto::CUDA ? kWarp
                                               : hardware.simd_bits() / 32;
}

int64_t ElementsOf(const std::vector<int64_t>& dims) {
  int64_t elements = 1;
  for (const int64_t dim : dims) elements *= dim;
  return elements;
}

// Says whether a main operand ends with the dimension: its elements are
// neighbours in memory. A statistic of each row also ends with the rows, but
// vectors run along the operands that have most elements or several dimensions.
bool IsContiguous(const ops::Operator& op, const proto::Shape& shape,
                  const proto::Shape& padded) {
  const auto before = op.Operands(shape), after = op.Operands(padded);
  if (!before.ok() || !after.ok() || before->size() != after->size()) {
    return false;
  }
  int64_t most = 0;
  for (const ops::OperandSpec& spec : *before) {
    most = std::max(most, ElementsOf(spec.dims));
  }
  for (size_t i = 0; i < before->size(); ++i) {
    const std::vector<int64_t>& a = (*before)[i].dims;
    if (a.size() < 2 && ElementsOf(a) < most) continue;
    const std::vector<int64_t>& b = (*after)[i].dims;
    if (!a.empty() && !b.empty() && a.back() != b.back()) return true;
  }
  return false;
}

// Says whether vectors that run along the dimension stay empty in part, and
// rounds it up to whole ones.
bool IsShort(const ops::Operator& op, const proto::Shape& shape, int dim,
             int64_t lanes, proto::Shape* padded) {
  const int64_t length = shape.dims(dim).value();
  const int64_t whole = (length + lanes - 1) / lanes * lanes;
  // Along a dimension of 1 nothing is vectorised.
  if (length < 2 ||
      static_cast<double>(whole) < kMuchPadding * static_cast<double>(length)) {
    return false;
  }
  *padded = shape;
  padded->mutable_dims(dim)->set_value(whole);
  return ops::CheckShape(op, *padded).ok() && IsContiguous(op, shape, *padded);
}

absl::Status CheckSize(const ops::Operator& op, const proto::Shape& padded) {
  if (op.Flop(padded) > kMostFlop) {
    return absl::OutOfRangeError(absl::StrFormat(
        "whole vectors would take %.2g FLOP, and %.2g are the most",
        op.Flop(padded), kMostFlop));
  }
  if (op.MovedBytes(padded) > kMostBytes) {
    return absl::OutOfRangeError(absl::StrFormat(
        "whole vectors would move %.0f MiB, and %.0f are the "
        "most",
        op.MovedBytes(padded) / (1 << 20), kMostBytes / (1 << 20)));
  }
  return absl::OkStatus();
}

}  // namespace

void MeasurePadding(const Subject& subject, const Machine& machine,
                    const EvaluatorFor& evaluator_for,
                    const suites::EvaluationOptions& options,
                    Numbers* numbers) {
  const ops::Operator& op = *subject.entry.entry->op;
  const proto::Shape& shape = subject.entry.task.shape();
  const int64_t lanes = LanesOf(machine.hardware);
  const double reached = ReachedShare(*numbers);
  if (lanes < 2 || reached <= 0 || reached > kNear) return;
  const double time_ns = numbers->ValueOr("time_ns", 0);
  const double fixed = numbers->ValueOr("fixed_share", 0);
  int tried = 0;
  std::string why;
  for (int i = 0; i < shape.dims_size() && tried < kMostDims; ++i) {
    proto::Shape padded;
    if (!IsShort(op, shape, i, lanes, &padded)) continue;
    if (const absl::Status size = CheckSize(op, padded); !size.ok()) {
      why = std::string(size.message());
      continue;
    }
    ++tried;
    suites::TaskEntry entry = subject.entry;
    *entry.task.mutable_shape() = padded;
    const suites::Evaluation evaluation =
        evaluator_for(entry.task).Evaluate(subject.config, options);
    if (!evaluation.trial().has_time_ns()) {
      why = WhyUntimed(evaluation);
      continue;
    }
    Numbers of_padded;
    AddRoofline(entry, machine, evaluation.trial().time_ns(), &of_padded);
    const double share = ReachedShare(of_padded);
    if (share <= 0) {
      why = absl::StrCat("the padded shape has no roofline: ",
                         of_padded.WhyUnknown("roofline_share"));
      continue;
    }
    // More work also spreads what every call repeats.
    const double work = std::max(op.Flop(padded) / op.Flop(shape),
                                 op.MovedBytes(padded) / op.MovedBytes(shape));
    const double with_fixed_ns = time_ns * (fixed + (1 - fixed) * work);
    const double explained =
        std::max(reached, share * evaluation.trial().time_ns() / with_fixed_ns);
    const double gain = std::max(0., 1 - explained / share);
    if (gain < numbers->ValueOr("padding_gain", -1)) continue;
    const int64_t length = shape.dims(i).value();
    const int64_t whole = padded.dims(i).value();
    numbers->Set(
        "padding_gain", gain,
        absl::StrFormat("%s=%d in place of %d takes %.2f times as long",
                        shape.dims(i).name(), whole, length,
                        evaluation.trial().time_ns() / time_ns));
    numbers->Set("padded_share", share, "measured ceilings");
    numbers->Set("padded_length", static_cast<double>(whole), "whole vectors");
    numbers->Set("short_length", static_cast<double>(length), "the shape");
  }
  if (!why.empty() && numbers->Find("padding_gain") == nullptr) {
    numbers->SetUnsupported("padding_gain", why);
  }
}

}  // namespace optrail::diagnosis
