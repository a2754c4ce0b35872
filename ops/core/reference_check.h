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
//   OPTRAIL_RETURN_IF_ERROR(runnable->Run(operands->addresses()));
//   OPTRAIL_ASSIGN_OR_RETURN(double error, operands->Verify());
//
// References that take long are computed in part where the operator offers that
// (partial_check.h), and kept in a folder where other processes find them
// (ShareReferences).
//
// The operator tests and the stopwatch both use it. It does not protect from a
// kernel that crashes or hangs: processes do.

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "base/file/file_cache.h"
#include "ops/core/compare.h"
#include "ops/core/device.h"
#include "ops/core/operand_values.h"
#include "ops/core/operator.h"
#include "ops/core/partial_check.h"
#include "tuning/proto/config.pb.h"

namespace optrail::ops {

// A call of more than this is checked in part, if its operator offers that.
inline constexpr double kMaxWholeReferenceFlop = 1e9;

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

  // Without any memory of a device: for Make(), ComputeReference() and
  // TakeMade() alone.
  static absl::StatusOr<std::unique_ptr<CheckedOperands>> CreateToMake(
      const Operator& op, const proto::Shape& shape);

  CheckedOperands(const CheckedOperands&) = delete;
  CheckedOperands& operator=(const CheckedOperands&) = delete;

  // Makes random inputs of `seed` the current ones and writes them to the
  // device. They are made on first use and cached for the last few fillings.
  absl::Status Fill(uint64_t seed, Values values = Values::kTypical);

  // Keeps references in `folder`, for this and other processes of the same
  // `build`: what a reference is follows from that, the operator, the shape and
  // the inputs.
  void ShareReferences(const std::string& folder, const std::string& build);

  // Computes the reference of the current inputs, unless it is cached or in the
  // shared folder. It may take long; Verify() does it where nobody did before.
  void ComputeReference();

  // Inputs are made for other operands of the same operator and shape: Make()
  // is Fill() but for the device, to which nothing is written.
  void Make(uint64_t seed, Values values);
  // Those of the seed, with their reference if it was computed. They are made
  // anew here when they are needed again.
  class Made;
  Made TakeMade(uint64_t seed);
  // Fill() and ComputeReference() find them from now on.
  void Adopt(Made made);

  // Device addresses in the order of Operator::Operands(), for a Call.
  absl::Span<void* const> addresses(int set) const override {
    return addresses_[set];
  }
  absl::Span<void* const> addresses() const { return addresses_[0]; }
  absl::Span<const int64_t> bytes() const override { return bytes_; }
  int sets() const override { return static_cast<int>(addresses_.size()); }
  bool has_in_out() const override { return has_in_out_; }
  absl::Span<const OperandSpec> specs() const { return specs_; }

  // The size of all operands of one set together.
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

  // What a call left in outputs and in-out operands, on the host, beside what
  // should be there; or, of large ones, what the device found out about them.
  // Needs the device no longer, so that it can be compared on another thread
  // while the device goes on; must not outlive the operands.
  class Results;

  // After exactly one call on `set`, since Arm(). DataLoss if an input was
  // changed or memory next to an operand was overwritten. Other codes: the
  // device failed.
  absl::StatusOr<Results> TakeResults(int set = 0);

  // TakeResults(), compared.
  absl::StatusOr<double> Verify(int set = 0);

  // The bytes of each result after a call, by operand, wherever they lie;
  // nothing is checked and no reference computed.
  using ResultBytes = std::vector<std::vector<char>>;
  absl::StatusOr<ResultBytes> CopyResults(int set = 0);
  // A hash of them.
  uint64_t BitsOf(const ResultBytes& bytes) const;

  // Returns whether the operands are in memory of a device that goes on while
  // the host compares.
  bool far() const;

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
    uint64_t input_hash = 0;       // of the bytes of kInput
    std::vector<char> initial;     // the bytes of kInOut
    std::vector<double> recorded;  // of the spec's file, if it has one
  };

  // Memory that nobody touches before those threads that fill it: to have all
  // pages of 128 MiB from one takes longer than the values.
  template <typename T>
  struct Untouched : std::allocator<T> {
    template <typename U>
    struct rebind {
      using other = Untouched<U>;
    };
    template <typename U>
    void construct(U* at) {
      ::new (static_cast<void*>(at)) U;
    }
    template <typename U, typename... Args>
    void construct(U* at, Args&&... args) {
      ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
    }
  };
  using Bytes = std::vector<char, Untouched<char>>;

  // Inputs and, once somebody asked for it, their reference.
  struct DataSet {
    uint64_t seed = 0;
    Values values = Values::kTypical;
    std::vector<Bytes> inputs;  // encoded; empty for outputs
    // Per output or in-out operand, in their order; empty: not computed yet,
    // or only in part.
    std::vector<std::vector<double>> reference;
    absl::optional<PartialExpectation> part;
    // The same inputs on a device that is far; null where there are none.
    std::vector<std::unique_ptr<Buffer>> kept;
    bool has_reference() const { return !reference.empty() || part; }
    int64_t bytes() const;
  };

  CheckedOperands(const Operator& op, const proto::Shape& shape, Device* device,
                  std::vector<OperandSpec> specs);
  static absl::StatusOr<std::unique_ptr<CheckedOperands>> CreateOn(
      Device* device, const Operator& op, const proto::Shape& shape, int sets);

  // That a check cannot do without.
  double LeastHostBytes(int sets) const;
  std::string Name(int index) const;
  Buffer& buffer(int index, int set) const;
  DataSet& current() const { return *cache_.front(); }
  std::vector<double> ValuesOf(const DataSet& data, int index) const;
  std::vector<std::vector<double>> AllValues(const DataSet& data) const;
  // The one result that is checked in part; -1: results are checked whole.
  int PartialResult() const;
  std::string SharedKey() const;
  bool FindShared(const std::string& key);
  void Share(const std::string& key) const;
  void TrimCache();
  // The error of a result of a device that is far, found out there; nullopt: it
  // has to be brought to the host.
  absl::StatusOr<absl::optional<double>> ErrorWhereItLies(int set);
  // An input of a device that is far, from what is kept there.
  absl::Status FillFar(int index);
  // If not, scratch_ has what it holds now.
  absl::StatusOr<bool> InputIsUnchanged(int index);
  // Inputs and guard zones of a device that is far; false also where there is
  // no telling.
  absl::StatusOr<bool> AreSoundWhereTheyLie();

  const Operator& op_;
  const proto::Shape shape_;
  Device* const device_;  // null: no buffers
  const std::vector<OperandSpec> specs_;
  bool has_in_out_ = false;
  int64_t bytes_per_set_ = 0;
  std::vector<Operand> operands_;
  std::vector<std::vector<void*>> addresses_;  // [set][operand]
  std::vector<int64_t> bytes_;                 // of each operand
  bool filled_ = false;
  // Most recently used first: the current one. Results keep theirs.
  std::list<std::shared_ptr<DataSet>> cache_;
  std::vector<char> scratch_;  // one operand as the host sees it
  // Of the last Results, by operand; used again once they are gone.
  std::shared_ptr<std::vector<std::vector<char>>> taken_;
  absl::optional<FileCache> shared_;
  std::string shared_build_;
};

class CheckedOperands::Made {
 private:
  friend class CheckedOperands;
  std::vector<std::shared_ptr<DataSet>> data_;
};

class CheckedOperands::Results {
 public:
  // The largest error in units of the operator's tolerance, at most 1. DataLoss
  // names the operand, index, value and expectation if an output is wrong.
  absl::StatusOr<double> Compare() const;

  // A hash of the bits of all results; nullopt where the device compared them.
  absl::optional<uint64_t> Bits() const;

 private:
  friend class CheckedOperands;
  Results(const CheckedOperands& operands, std::shared_ptr<const DataSet> data)
      : operands_(&operands), data_(std::move(data)) {}

  const CheckedOperands* operands_;
  std::shared_ptr<const DataSet> data_;
  // The bytes of each result, by operand; null where the device found the
  // error.
  std::shared_ptr<const std::vector<std::vector<char>>> bytes_;
  absl::optional<double> error_;
};

}  // namespace optrail::ops

#endif  // OPTRAIL_OPS_CORE_REFERENCE_CHECK_H_
