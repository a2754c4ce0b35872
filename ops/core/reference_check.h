#ifndef OPTRAIL_OPS_CORE_REFERENCE_CHECK_H_
#define OPTRAIL_OPS_CORE_REFERENCE_CHECK_H_

// Whether a kernel computes what its operator says. CheckedOperands holds the
// buffers of one operator and shape on one device and compares what a kernel
// left in them with the double-precision reference on seeded random inputs.
//
//   OPTRAIL_ASSIGN_OR_RETURN(
//       std::unique_ptr<CheckedOperands> operands,
//       CheckedOperands::Create(op, shape, device));
//   OPTRAIL_RETURN_IF_ERROR(operands->Fill(seed));  // computes the reference
//   OPTRAIL_RETURN_IF_ERROR(operands->Arm());       // poisons and restores
//   invocation->Run(operands->addresses());
//   OPTRAIL_ASSIGN_OR_RETURN(double error, operands->Verify());
//
// Where the reference would take minutes, results are compared as weighted sums
// of runs of kFoldRun neighbours, if the operator knows how
// (Operator::FoldedReference): every element of the result has a part in it. A
// sum may be off by what the tolerances of its elements add up to, for a bf16
// product about a fifth of a typical element. A single element that is off by
// its own size hides there with a probability of about 1/4; a row of wrong
// elements with 1/40 or less; so a wrong tile of 64 rows does not. Weights are
// drawn anew with each seed.
//
// The operator tests and the stopwatch both use it. It does not protect from a
// kernel that crashes or hangs: processes do.

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/core/device.h"
#include "ops/core/operator.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

// What inputs are made of. Typical values are what is timed: denormals, for
// one, slow many processors down. Hard ones have the operand's hard values
// among them, and are what results are checked with: a kernel that is right
// within
// (-1, 1) only, or for values that all differ, is wrong.
enum class Values { kTypical, kHard };

// elements() values that the operand's data type represents exactly, made of
// `seed` alone: see OperandSpec for their distribution. One in eight hard ones
// is special.
std::vector<double> RandomValues(const OperandSpec& spec, uint64_t seed,
                                 Values values = Values::kTypical);

// References of more arithmetic than this are folded, in runs of so many
// elements.
inline constexpr double kFoldAboveFlop = 4e9;
inline constexpr int64_t kFoldRun = 64;

struct CompareResult {
  // Largest |value - expected| / (absolute + relative * |expected|); infinite
  // for a value that is NaN, infinite or wrong under a tolerance of zero.
  double max_error_in_tolerances = 0;
  int64_t wrong_count = 0;
  // Where the error first exceeds one tolerance; -1 if nowhere.
  int64_t first_wrong_index = -1;
  double first_wrong_value = 0;
  double first_wrong_expected = 0;

  bool ok() const { return wrong_count == 0; }
};

// Compares `expected.size()` elements of type `type` at `values` with
// `expected`. NaN is right only where NaN is expected, infinity only where the
// same infinity is expected.
CompareResult Compare(proto::DataType type, const void* values,
                      absl::Span<const double> expected, Tolerance tolerance);

// The same for rows of weights.size() elements whose runs of kFoldRun
// neighbours are added up with these weights; an index is that of a run's first
// element.
CompareResult CompareFolded(proto::DataType type, const void* values,
                            absl::Span<const double> folded,
                            absl::Span<const double> weights,
                            Tolerance tolerance);

class CheckedOperands : public OperandSets {
 public:
  // Allocates the operands of op for `shape`, which CheckShape must accept.
  // In-out operands exist `sets` times, so that a kernel that works in place
  // can be called `sets` times before they are restored; the other operands
  // are shared by all sets. ResourceExhausted if there is not enough memory.
  // `op` and `device` must outlive the object.
  static absl::StatusOr<std::unique_ptr<CheckedOperands>> Create(
      const Operator& op, const proto::Shape& shape, Device& device,
      int sets = 1);

  CheckedOperands(const CheckedOperands&) = delete;
  CheckedOperands& operator=(const CheckedOperands&) = delete;

  // Makes random inputs of `seed` the current ones and writes them to the
  // device. They are made on first use and cached for the last few fillings.
  absl::Status Fill(uint64_t seed, Values values = Values::kTypical);

  // Computes the reference of the current inputs, unless it is cached. It may
  // take long; Verify() does it where nobody did before.
  void ComputeReference();

  // Device addresses in the order of Operator::Operands(), for
  // Invocation::Run().
  absl::Span<void* const> addresses(int set) const override {
    return addresses_[set];
  }
  absl::Span<void* const> addresses() const { return addresses_[0]; }
  absl::Span<const int64_t> bytes() const override { return bytes_; }
  int sets() const override { return static_cast<int>(addresses_.size()); }
  bool has_in_out() const override { return has_in_out_; }
  absl::Span<const OperandSpec> specs() const { return specs_; }

  // Of all operands of one set together.
  int64_t bytes_per_set() const { return bytes_per_set_; }

  // Smallest page size of the buffers.
  int64_t page_bytes() const;

  // Writes the values of Fill() back into the in-out operands of every set.
  // Nothing to do for other operands.
  absl::Status Restore() override;

  // Makes outputs unlike any result: NaN for floats, the smallest value for
  // integers.
  absl::Status PoisonOutputs();

  // Before a call that is going to be verified: Restore(), PoisonOutputs() and
  // fresh guard zones.
  absl::Status Arm();

  // After exactly one call on `set`, since Arm(): returns the largest error in
  // units of the operator's tolerance, at most 1. DataLoss names the operand,
  // index, value and expectation if an output is wrong, an input was changed
  // or memory next to an operand was overwritten. Other codes: the device
  // failed.
  absl::StatusOr<double> Verify(int set = 0);

  // What a call must not do at any time, also while it is being timed: changes
  // inputs or memory next to operands. Cheaper than Verify() and valid after
  // any number of calls on any sets. DataLoss as there.
  absl::Status CheckInputsAndGuards();

  // Writes inputs and in-out operands again, after a kernel changed what it
  // must not: the next kernel finds its operands sound.
  absl::Status Repair();

 private:
  // One operand; in-out operands have a buffer per set, others one for all.
  struct Operand {
    std::vector<std::unique_ptr<Buffer>> buffers;
    uint64_t input_hash = 0;    // of the bytes of kInput
    std::vector<char> initial;  // the bytes of kInOut
  };

  // Inputs and, once somebody asked for it, their reference.
  struct DataSet {
    uint64_t seed = 0;
    Values values = Values::kTypical;
    std::vector<std::vector<char>> inputs;  // encoded; empty for outputs
    // Per output or in-out operand, in their order; empty: not computed yet.
    std::vector<std::vector<double>> reference;
    // Not empty: the reference is folded with them.
    std::vector<double> weights;
    int64_t bytes() const;
  };

  CheckedOperands(const Operator& op, const proto::Shape& shape, Device& device,
                  std::vector<OperandSpec> specs);

  std::string Name(int index) const;
  Buffer& buffer(int index, int set) const;
  std::vector<double> ValuesOf(int index) const;
  void TrimCache();

  const Operator& op_;
  const proto::Shape shape_;
  Device& device_;
  const std::vector<OperandSpec> specs_;
  bool has_in_out_ = false;
  int64_t bytes_per_set_ = 0;
  std::vector<Operand> operands_;
  std::vector<std::vector<void*>> addresses_;  // [set][operand]
  std::vector<int64_t> bytes_;                 // of each operand
  bool filled_ = false;
  std::list<DataSet> cache_;   // most recently used first; the current one
  std::vector<char> scratch_;  // one operand as the host sees it
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_REFERENCE_CHECK_H_
