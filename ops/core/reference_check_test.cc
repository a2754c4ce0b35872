#include "ops/core/reference_check.h"

#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file/file.h"
#include "base/process/machine_memory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/device/cpu/device.h"
#include "tuning/proto/canonical.h"

namespace optrail::ops {
namespace {

using testing::HasSubstr;

proto::Shape Shape(const std::string& text) {
  auto shape = tuning::ParseShape(text);
  EXPECT_TRUE(shape.ok()) << shape.status();
  return *shape;
}

// y = 3 * x, and state += x in place. Counts how often it is asked.
class Scale : public Operator {
 public:
  std::string name() const override { return "scale"; }
  std::vector<std::string> dims() const override { return {"n"}; }
  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const int64_t n = shape.dims(0).value();
    const proto::DataType type = shape.data_types(0);
    return std::vector<OperandSpec>{{"x", type, {n}, Role::kInput},
                                    {"state", type, {n}, Role::kInOut},
                                    {"y", type, {n}, Role::kOutput}};
  }
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::F32}, {proto::I32}, {proto::F8E4M3}};
  }
  double Flop(const proto::Shape& shape) const override { return 1; }
  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    ++references;
    EXPECT_TRUE(operands[2].empty()) << "outputs have no values";
    std::vector<double> state = operands[1], y = operands[0];
    for (size_t i = 0; i < state.size(); ++i) state[i] += operands[0][i];
    for (double& value : y) value *= 3;
    return {state, y};
  }
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    return {1e-6, 1e-6};
  }

  mutable int references = 0;
};

class CheckedOperandsTest : public testing::Test {
 protected:
  static constexpr int64_t kN = 100;

  void SetUp() override {
    device_ = *MakeCpuDevice(1);
    auto operands =
        CheckedOperands::Create(op_, Shape("n=100/f32"), *device_, 3);
    ASSERT_TRUE(operands.ok()) << operands.status();
    operands_ = *std::move(operands);
    ASSERT_TRUE(operands_->Fill(1).ok());
    ASSERT_TRUE(operands_->Arm().ok());
  }

  float* Address(int operand, int set = 0) {
    return static_cast<float*>(operands_->addresses(set)[operand]);
  }

  void RunRight(int set = 0) {
    for (int i = 0; i < kN; ++i) {
      Address(1, set)[i] += Address(0, set)[i];
      Address(2, set)[i] = 3 * Address(0, set)[i];
    }
  }

  std::string Error(int set = 0) {
    const auto error = operands_->Verify(set);
    EXPECT_FALSE(error.ok());
    EXPECT_EQ(error.status().code(), absl::StatusCode::kDataLoss);
    return std::string(error.status().message());
  }

  Scale op_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<CheckedOperands> operands_;
};

TEST_F(CheckedOperandsTest, AcceptsARightResult) {
  RunRight();
  const auto error = operands_->Verify();
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_GE(*error, 0);
  EXPECT_LE(*error, 1);
}

TEST_F(CheckedOperandsTest, ResultsAreThoseOfTheirCallWhateverFollows) {
  RunRight();
  const auto right = operands_->TakeResults();
  ASSERT_TRUE(right.ok()) << right.status();
  ASSERT_TRUE(operands_->Arm().ok());
  RunRight();
  Address(2)[17] += 1e-4f;
  const auto wrong = operands_->TakeResults();
  ASSERT_TRUE(wrong.ok()) << wrong.status();
  // Other inputs, enough of them for the first to be forgotten.
  for (uint64_t seed = 2; seed < 20; ++seed) {
    ASSERT_TRUE(operands_->Fill(seed).ok());
  }
  ASSERT_TRUE(operands_->Arm().ok());
  EXPECT_TRUE(right->Compare().ok());
  EXPECT_THAT(std::string(wrong->Compare().status().message()),
              HasSubstr("first at index 17"));
}

TEST_F(CheckedOperandsTest, RefusesWritingNothing) {
  EXPECT_THAT(Error(), HasSubstr("in-out operand \"state\" of scale n=100/f32 "
                                 "is wrong in 100 of 100 elements; first at "
                                 "index 0"));
}

TEST_F(CheckedOperandsTest, RefusesAnOutputThatIsPartlyMissing) {
  RunRight();
  ASSERT_TRUE(operands_->PoisonOutputs().ok());
  for (int i = 0; i < kN - 1; ++i) Address(2)[i] = 3 * Address(0)[i];
  EXPECT_THAT(Error(), HasSubstr("output operand \"y\" of scale n=100/f32 is "
                                 "wrong in 1 of 100 elements; first at index "
                                 "99: nan, expected"));
}

TEST_F(CheckedOperandsTest, RefusesASmallError) {
  RunRight();
  Address(2)[17] += 1e-4f;
  EXPECT_THAT(Error(), HasSubstr("first at index 17"));
}

TEST_F(CheckedOperandsTest, RefusesAChangedInput) {
  RunRight();
  Address(0)[5] = 7;
  EXPECT_THAT(Error(), HasSubstr("input operand \"x\" of scale n=100/f32 was "
                                 "changed in 1 of 100 elements; first at index "
                                 "5: 7 was"));
  EXPECT_FALSE(operands_->CheckInputsAndGuards().ok());
  ASSERT_TRUE(operands_->Repair().ok());
  RunRight();
  EXPECT_TRUE(operands_->Verify().ok());
}

TEST_F(CheckedOperandsTest, RefusesWritesOutsideOfEveryOperand) {
  for (int operand = 0; operand < 3; ++operand) {
    for (const int64_t index : {int64_t{-1}, kN}) {
      ASSERT_TRUE(operands_->Arm().ok());
      RunRight();
      static_cast<volatile float*>(Address(operand))[index] = 1;
      EXPECT_THAT(Error(),
                  HasSubstr(index < 0 ? "before the start" : "after the end"));
    }
  }
}

TEST_F(CheckedOperandsTest, RestoresInOutOperandsBetweenCalls) {
  RunRight();
  ASSERT_TRUE(operands_->Verify().ok());
  RunRight();  // a second time on top of the first
  EXPECT_THAT(Error(), HasSubstr("in-out operand \"state\""));
  ASSERT_TRUE(operands_->Arm().ok());
  RunRight();
  EXPECT_TRUE(operands_->Verify().ok());
}

TEST_F(CheckedOperandsTest, SetsHaveTheirOwnInOutOperands) {
  ASSERT_EQ(operands_->sets(), 3);
  EXPECT_TRUE(operands_->has_in_out());
  EXPECT_NE(Address(1, 0), Address(1, 1));
  EXPECT_EQ(Address(0, 0), Address(0, 1));
  for (int set = 0; set < 3; ++set) {
    RunRight(set);
    EXPECT_TRUE(operands_->Verify(set).ok()) << set;
  }
  EXPECT_EQ(operands_->bytes_per_set(), 3 * 4 * kN);
  EXPECT_GE(operands_->page_bytes(), 4096);
}

TEST_F(CheckedOperandsTest, ComputesTheReferenceOncePerSeed) {
  EXPECT_EQ(op_.references, 0);
  operands_->ComputeReference();
  EXPECT_EQ(op_.references, 1);
  ASSERT_TRUE(operands_->Fill(2).ok());
  for (const uint64_t seed : {1, 2, 1, 2}) {
    ASSERT_TRUE(operands_->Fill(seed).ok());
    ASSERT_TRUE(operands_->Arm().ok());
    RunRight();
    EXPECT_TRUE(operands_->Verify().ok());
  }
  EXPECT_EQ(op_.references, 2);
}

TEST_F(CheckedOperandsTest, AResultForAnotherSeedIsWrong) {
  RunRight();
  const std::vector<float> old(Address(2), Address(2) + kN);
  ASSERT_TRUE(operands_->Fill(2).ok());
  ASSERT_TRUE(operands_->Arm().ok());
  RunRight();
  std::copy(old.begin(), old.end(), Address(2));
  EXPECT_THAT(Error(), HasSubstr("output operand \"y\""));
}

// Right for what typical inputs are made of, and 7 from 1 on.
TEST_F(CheckedOperandsTest, AKernelThatIsWrongAtTheEndOfTheRangeIsFound) {
  const auto run = [&] {
    RunRight();
    for (int i = 0; i < kN; ++i) {
      if (Address(0)[i] >= 1) Address(2)[i] = 7;
    }
  };
  run();
  EXPECT_TRUE(operands_->Verify().ok()) << "typical values lie below 1";
  // A hundred values hold a dozen hard ones of ten kinds.
  std::string error;
  for (uint64_t seed = 1; seed < 10 && error.empty(); ++seed) {
    ASSERT_TRUE(operands_->Fill(seed, Values::kHard).ok());
    ASSERT_TRUE(operands_->Arm().ok());
    run();
    error = std::string(operands_->Verify().status().message());
  }
  EXPECT_THAT(error, HasSubstr("hard values"));
}

// Divides by its input to multiply: right unless that is zero.
TEST_F(CheckedOperandsTest, AKernelThatCannotTakeZeroIsFound) {
  const auto run = [&] {
    RunRight();
    for (int i = 0; i < kN; ++i) {
      const float x = Address(0)[i];
      Address(2)[i] = 3 * x * x / x;
    }
  };
  run();
  EXPECT_TRUE(operands_->Verify().ok());
  ASSERT_TRUE(operands_->Fill(1, Values::kHard).ok());
  ASSERT_TRUE(operands_->Arm().ok());
  run();
  EXPECT_FALSE(operands_->Verify().ok());
}

TEST_F(CheckedOperandsTest, TypicalAndHardInputsOfASeedAreBothKept) {
  for (int turn = 0; turn < 3; ++turn) {
    for (const Values values : {Values::kHard, Values::kTypical}) {
      ASSERT_TRUE(operands_->Fill(1, values).ok());
      ASSERT_TRUE(operands_->Arm().ok());
      RunRight();
      EXPECT_TRUE(operands_->Verify().ok());
    }
  }
  EXPECT_EQ(op_.references, 2);
}

TEST_F(CheckedOperandsTest, PoisonsIntegersToo) {
  auto created = CheckedOperands::Create(op_, Shape("n=4/i32"), *device_);
  ASSERT_TRUE(created.ok()) << created.status();
  ASSERT_TRUE((*created)->Fill(1).ok());
  ASSERT_TRUE((*created)->Arm().ok());
  const auto* y = static_cast<const int32_t*>((*created)->addresses()[2]);
  EXPECT_EQ(y[3], std::numeric_limits<int32_t>::min());
}

TEST_F(CheckedOperandsTest, RefusesShapesThatTheOperatorDoesNotHave) {
  EXPECT_THAT(
      std::string(CheckedOperands::Create(op_, Shape("m=4/f32"), *device_)
                      .status()
                      .message()),
      HasSubstr("shape m=4/f32 of operator scale has dimensions \"m\", "
                "expected \"n\" in this order"));
  proto::Shape empty = Shape("n=4/f32");
  empty.mutable_dims(0)->set_value(0);
  EXPECT_THAT(
      std::string(
          CheckedOperands::Create(op_, empty, *device_).status().message()),
      HasSubstr("dimension n is 0, expected at least 1"));
  EXPECT_THAT(
      std::string(CheckedOperands::Create(op_, Shape("n=4/f8e4m3"), *device_)
                      .status()
                      .message()),
      HasSubstr("operand x of operator scale has data type f8e4m3"));
}

TEST_F(CheckedOperandsTest, ReportsOperandsThatAreTooLarge) {
  const auto created =
      CheckedOperands::Create(op_, Shape("n=10000000000000/f32"), *device_);
  EXPECT_EQ(created.status().code(), absl::StatusCode::kResourceExhausted)
      << created.status();
  EXPECT_EQ(
      CheckedOperands::Create(op_, Shape("n=900000000000000000/f32"), *device_)
          .status()
          .code(),
      absl::StatusCode::kInvalidArgument);
}

TEST_F(CheckedOperandsTest, WhatTheReferenceNeedsIsKnownBeforeItIsMade) {
  // Operands would fit.
  const int64_t n = MachineMemoryBytes() / 24;
  const auto created = CheckedOperands::Create(
      op_, Shape(absl::StrCat("n=", n, "/f32")), *device_);
  EXPECT_EQ(created.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(created.status().message()),
              HasSubstr("and the reference take "));
}

// c = a b, large enough to be checked in part.
class Product : public Operator {
 public:
  std::string name() const override { return "product"; }
  std::vector<std::string> dims() const override { return {"n"}; }
  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const int64_t n = shape.dims(0).value();
    return std::vector<OperandSpec>{{"a", proto::F32, {n, n}, Role::kInput},
                                    {"b", proto::F32, {n, n}, Role::kInput},
                                    {"c", proto::F32, {n, n}, Role::kOutput}};
  }
  // A made-up number.
  double Flop(const proto::Shape& shape) const override { return 2e9; }
  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    ADD_FAILURE() << "computed whole";
    return {};
  }
  bool HasPartialReference(const proto::Shape& shape) const override {
    return true;
  }
  std::vector<double> ReferenceRow(
      const proto::Shape& shape, absl::Span<const std::vector<double>> operands,
      int64_t row) const override {
    ++rows;
    const int64_t n = shape.dims(0).value();
    std::vector<double> c(n);
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t j = 0; j < n; ++j) {
        c[j] += operands[0][row * n + p] * operands[1][p * n + j];
      }
    }
    return c;
  }
  std::vector<double> ReferenceTimes(
      const proto::Shape& shape, absl::Span<const std::vector<double>> operands,
      absl::Span<const double> x, int count) const override {
    ++times;
    const int64_t n = shape.dims(0).value();
    std::vector<double> y(x.begin(), x.end());
    for (const int operand : {1, 0}) {
      std::vector<double> product(n * count);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          for (int s = 0; s < count; ++s) {
            product[i * count + s] +=
                operands[operand][i * n + j] * y[j * count + s];
          }
        }
      }
      y = std::move(product);
    }
    return y;
  }
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    return {1e-4, 0};
  }
  mutable std::atomic<int> rows = 0;
  mutable int times = 0;
};

void Multiply(absl::Span<void* const> operands, int n) {
  const auto* const a = static_cast<const float*>(operands[0]);
  const auto* const b = static_cast<const float*>(operands[1]);
  auto* const c = static_cast<float*>(operands[2]);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int p = 0; p < n; ++p) {
        sum += double{a[i * n + p]} * double{b[p * n + j]};
      }
      c[i * n + j] = static_cast<float>(sum);
    }
  }
}

std::string NewFolder() {
  std::string pattern = testing::TempDir() + "/references_XXXXXX";
  return mkdtemp(pattern.data());
}

TEST(LargeReference, IsCheckedInPartAndNamesWhatIsWrong) {
  const Product op;
  const auto device = *MakeCpuDevice(1);
  const auto operands =
      *CheckedOperands::Create(op, Shape("n=48/f32"), *device);
  for (const uint64_t seed : {1, 2, 3}) {
    ASSERT_TRUE(operands->Fill(seed, Values::kHard).ok());
    ASSERT_TRUE(operands->Arm().ok());
    Multiply(operands->addresses(), 48);
    EXPECT_TRUE(operands->Verify().ok());
    static_cast<float*>(operands->addresses()[2])[48 * 48 - 50] += 1;
    const absl::Status wrong = operands->Verify().status();
    EXPECT_TRUE(absl::IsDataLoss(wrong));
    EXPECT_THAT(std::string(wrong.message()),
                HasSubstr("is wrong in at least 1 of 2304 elements; first at "
                          "index 2254"));
  }
}

TEST(SharedReferences, AreComputedOnceForAllProcesses) {
  const std::string folder = NewFolder();
  const auto device = *MakeCpuDevice(1);
  const Scale scale;
  const Product product;
  for (int process = 0; process < 3; ++process) {
    for (const uint64_t seed : {1, 2}) {
      for (const Operator* op : {static_cast<const Operator*>(&scale),
                                 static_cast<const Operator*>(&product)}) {
        auto operands =
            *CheckedOperands::Create(*op, Shape("n=48/f32"), *device);
        operands->ShareReferences(folder, "build");
        ASSERT_TRUE(operands->Fill(seed).ok());
        operands->ComputeReference();
        ASSERT_TRUE(operands->Arm().ok());
        if (op == &product) {
          Multiply(operands->addresses(), 48);
          EXPECT_TRUE(operands->Verify().ok());
          // It is a reference, too, where it came from a file.
          static_cast<float*>(operands->addresses()[2])[700] += 1;
        }
        EXPECT_TRUE(absl::IsDataLoss(operands->Verify().status()));
      }
    }
  }
  EXPECT_EQ(scale.references, 2);
  EXPECT_EQ(product.times, 2);
}

TEST(SharedReferences, AreOfOneBuildShapeAndKindOfValuesAlone) {
  const std::string folder = NewFolder();
  const auto device = *MakeCpuDevice(1);
  const Scale op;
  const auto compute = [&](const char* shape, const char* build,
                           Values values) {
    auto operands = *CheckedOperands::Create(op, Shape(shape), *device);
    operands->ShareReferences(folder, build);
    ASSERT_TRUE(operands->Fill(1, values).ok());
    operands->ComputeReference();
  };
  compute("n=48/f32", "one", Values::kTypical);
  compute("n=48/f32", "other", Values::kTypical);
  compute("n=48/f32", "one", Values::kHard);
  compute("n=49/f32", "one", Values::kTypical);
  compute("n=48/i32", "one", Values::kTypical);
  EXPECT_EQ(op.references, 5);
  compute("n=48/f32", "one", Values::kTypical);
  EXPECT_EQ(op.references, 5);
}

TEST(SharedReferences, DamagedOrUnwritableOnesAreComputed) {
  const std::string folder = NewFolder();
  const auto device = *MakeCpuDevice(1);
  const Scale op;
  const auto compute = [&](const std::string& where) {
    auto operands = *CheckedOperands::Create(op, Shape("n=48/f32"), *device);
    operands->ShareReferences(where, "build");
    ASSERT_TRUE(operands->Fill(1).ok());
    operands->ComputeReference();
    ASSERT_TRUE(operands->Arm().ok());
    for (int i = 0; i < 48; ++i) {
      const auto address = [&](int operand) {
        return static_cast<float*>(operands->addresses()[operand]);
      };
      address(1)[i] += address(0)[i];
      address(2)[i] = 3 * address(0)[i];
    }
    EXPECT_TRUE(operands->Verify().ok());
  };
  compute("/proc/no_such_folder");
  EXPECT_EQ(op.references, 1);
  compute(folder);
  EXPECT_EQ(op.references, 2);
  const std::string path = JoinPath(folder, (*ListDirectory(folder))[0]);
  std::string bytes = *ReadFile(path);
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  compute(folder);
  EXPECT_EQ(op.references, 3);
  compute(folder);
  EXPECT_EQ(op.references, 3);
}

// Looks indices up in a table.
class Pick : public Operator {
 public:
  explicit Pick(std::string file) : file_(std::move(file)) {}
  std::string name() const override { return "pick"; }
  std::vector<std::vector<proto::DataType>> data_types() const override {
    return {{proto::I32}};
  }
  std::vector<std::string> dims() const override { return {"n"}; }
  absl::StatusOr<std::vector<OperandSpec>> Operands(
      const proto::Shape& shape) const override {
    const int64_t n = shape.dims(0).value();
    OperandSpec ids{"ids", proto::I32, {n}, Role::kInput, 4};
    ids.file = file_;
    return std::vector<OperandSpec>{ids, {"y", proto::I32, {n}, Role::kOutput}};
  }
  double Flop(const proto::Shape& shape) const override { return 1; }
  std::vector<std::vector<double>> Reference(
      const proto::Shape& shape,
      absl::Span<const std::vector<double>> operands) const override {
    return {operands[0]};
  }
  Tolerance ToleranceFor(const proto::Shape& shape) const override {
    return {0, 0};
  }

 private:
  const std::string file_;
};

// Memory of the host that pretends to lie elsewhere: what goes through the host
// is counted.
class FarDevice : public Device {
 public:
  struct Counts {
    int from_host = 0, to_host = 0, live = 0, sums = 0;
    int most_live = 1000;
    bool all_sound = true;  // of what was begun
  };
  FarDevice() : here_(*MakeCpuDevice(1)) {}

  const proto::Hardware& hardware() const override { return here_->hardware(); }
  absl::StatusOr<std::unique_ptr<Buffer>> Allocate(size_t bytes) override {
    if (counts.live >= counts.most_live) {
      return absl::ResourceExhaustedError("full");
    }
    ++counts.live;
    return std::make_unique<FarBuffer>(counts, *here_->Allocate(bytes));
  }
  absl::Status Synchronize() override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<Timer>> MakeTimer(Runnable&, OperandSets&,
                                                   TimingMode) override {
    return absl::UnimplementedError("");
  }
  std::unique_ptr<Monitor> MakeMonitor() override { return nullptr; }
  absl::StatusOr<proto::Ceilings> MeasureCeilings() override {
    return absl::UnimplementedError("");
  }

  Counts counts;

 private:
  class FarBuffer : public Buffer {
   public:
    FarBuffer(Counts& counts, std::unique_ptr<Buffer> memory)
        : counts_(counts), memory_(std::move(memory)) {}
    ~FarBuffer() override { --counts_.live; }
    void* data() override { return memory_->data(); }
    size_t size_bytes() const override { return memory_->size_bytes(); }
    size_t page_bytes() const override { return memory_->page_bytes(); }
    absl::Status CopyFromHost(const void* source) override {
      ++counts_.from_host;
      return memory_->CopyFromHost(source);
    }
    absl::Status CopyToHost(void* destination) override {
      ++counts_.to_host;
      return memory_->CopyToHost(destination);
    }
    bool far() const override { return true; }
    absl::Status FillWith(const void* element, size_t element_bytes) override {
      for (size_t at = 0; at < size_bytes(); at += element_bytes) {
        std::memcpy(static_cast<char*>(data()) + at, element, element_bytes);
      }
      return absl::OkStatus();
    }
    absl::Status CopyFrom(Buffer& other) override {
      return memory_->CopyFromHost(other.data());
    }
    absl::StatusOr<bool> Equals(Buffer& other) override {
      return std::memcmp(data(), other.data(), size_bytes()) == 0;
    }
    absl::Status BeginCheck(Buffer* other) override {
      counts_.all_sound &= memory_->CheckGuards().ok();
      if (other != nullptr) counts_.all_sound &= *Equals(*other);
      return absl::OkStatus();
    }
    absl::StatusOr<bool> EndCheck() override {
      return std::exchange(counts_.all_sound, true);
    }
    absl::Status CopyPartToHost(size_t from, absl::Span<char> part) override {
      std::memcpy(part.data(), static_cast<char*>(data()) + from, part.size());
      return absl::OkStatus();
    }
    absl::StatusOr<std::vector<double>> SumRows(const RowSums& sums) override {
      ++counts_.sums;
      std::vector<double> result(sums.rows * kRowSums);
      const auto* value = static_cast<const float*>(data());
      for (int64_t row = 0; row < sums.rows; ++row) {
        for (const uint16_t signs : sums.signs) {
          for (int s = 0; s < 16; ++s) {
            result[row * kRowSums + s] +=
                (signs >> s & 1) != 0 ? *value : -*value;
          }
          const double allowed =
              sums.absolute + sums.relative * std::abs(*value++);
          result[row * kRowSums + 16] += allowed * allowed;
        }
      }
      return result;
    }
    void ArmGuards() override { memory_->ArmGuards(); }
    absl::Status CheckGuards() override { return memory_->CheckGuards(); }

   private:
    Counts& counts_;
    const std::unique_ptr<Buffer> memory_;
  };

  const std::unique_ptr<Device> here_;
};

class FarOperandsTest : public testing::Test {
 protected:
  void Create() {
    operands_ = *CheckedOperands::Create(op_, Shape("n=100/f32"), device_, 1);
  }
  float* Address(int operand) {
    return static_cast<float*>(operands_->addresses(0)[operand]);
  }
  void RunRight() {
    for (int i = 0; i < 100; ++i) {
      Address(1)[i] += Address(0)[i];
      Address(2)[i] = 3 * Address(0)[i];
    }
  }
  absl::Status Check(uint64_t seed) {
    ExpectOk(operands_->Fill(seed));
    ExpectOk(operands_->Arm());
    RunRight();
    return operands_->Verify().status();
  }
  static void ExpectOk(const absl::Status& status) {
    EXPECT_TRUE(status.ok()) << status;
  }

  Scale op_;
  FarDevice device_;
  std::unique_ptr<CheckedOperands> operands_;
};

TEST_F(FarOperandsTest, InputsStayOnTheDevice) {
  Create();
  ExpectOk(Check(1));
  device_.counts.from_host = device_.counts.to_host = 0;
  ExpectOk(Check(1));
  // What works in place is filled and restored, and read as a result.
  EXPECT_EQ(device_.counts.from_host, 2);
  EXPECT_EQ(device_.counts.to_host, 2);
  const float before = Address(0)[0];
  ExpectOk(Check(2));
  EXPECT_NE(Address(0)[0], before);
  ExpectOk(Check(1));
  EXPECT_EQ(Address(0)[0], before);
}

TEST_F(FarOperandsTest, AChangedInputIsFound) {
  Create();
  ExpectOk(Check(1));
  Address(0)[5] = 7;
  const absl::Status changed = operands_->CheckInputsAndGuards();
  EXPECT_THAT(std::string(changed.message()),
              HasSubstr("was changed in 1 of 100 elements; first at index 5"));
  ExpectOk(operands_->Repair());
  ExpectOk(operands_->CheckInputsAndGuards());
  ExpectOk(Check(1));
}

TEST_F(FarOperandsTest, AnOutputThatIsNotWrittenIsFound) {
  Create();
  ExpectOk(operands_->Fill(1));
  ExpectOk(operands_->Arm());
  for (int i = 0; i < 100; ++i) Address(1)[i] += Address(0)[i];
  EXPECT_TRUE(absl::IsDataLoss(operands_->Verify().status()));
}

TEST_F(FarOperandsTest, WithoutRoomInputsComeFromTheHost) {
  device_.counts.most_live = 3;
  Create();
  ExpectOk(Check(1));
  ExpectOk(Check(2));
  Address(0)[5] = 7;
  EXPECT_TRUE(absl::IsDataLoss(operands_->CheckInputsAndGuards()));
}

TEST_F(FarOperandsTest, ALargeResultIsBroughtToTheHostOnlyIfItLooksWrong) {
  const Product op;
  const auto operands =
      *CheckedOperands::Create(op, Shape("n=48/f32"), device_);
  for (const uint64_t seed : {1, 2, 3}) {
    ExpectOk(operands->Fill(seed, Values::kHard));
    ExpectOk(operands->Arm());
    Multiply(operands->addresses(), 48);
    device_.counts.to_host = 0;
    const absl::StatusOr<double> right = operands->Verify();
    ASSERT_TRUE(right.ok()) << right.status();
    EXPECT_GT(*right, 0);
    EXPECT_EQ(device_.counts.to_host, 0);
    static_cast<float*>(operands->addresses()[2])[48 * 48 - 50] += 1;
    EXPECT_THAT(std::string(operands->Verify().status().message()),
                HasSubstr("is wrong in at least 1 of 2304 elements; first at "
                          "index 2254"));
    EXPECT_EQ(device_.counts.to_host, 1);
  }
  EXPECT_EQ(device_.counts.sums, 6);
}

TEST(RecordedInputs, ComeFromTheFileAndAreCheckedAgainstTheirLimit) {
  const std::string path = testing::TempDir() + "/ids.npy";
  const auto write = [&](std::vector<int32_t> values) {
    std::string header = "{'descr': '<i4', 'fortran_order': False, 'shape': (";
    header += std::to_string(values.size()) + ",), }";
    header.resize(117, ' ');
    header += '\n';
    std::string file("\x93NUMPY\x01\x00", 8);
    file += static_cast<char>(header.size());
    file += '\0';
    file += header;
    file.append(reinterpret_cast<const char*>(values.data()),
                values.size() * sizeof(int32_t));
    ASSERT_TRUE(WriteFileAtomically(path, file).ok());
  };
  const Pick op(path);
  const auto device = *MakeCpuDevice(1);
  const proto::Shape shape = Shape("n=7/i32");
  write({0, 1, 2, 3, 3});
  const auto operands = *CheckedOperands::Create(op, shape, *device);
  std::set<std::vector<int32_t>> seen;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    ASSERT_TRUE(operands->Fill(seed).ok());
    const auto* const ids =
        static_cast<const int32_t*>(operands->addresses()[0]);
    seen.insert(std::vector<int32_t>(ids, ids + 7));
  }
  // The file from each of its places.
  EXPECT_EQ(seen.size(), 5);
  EXPECT_EQ(seen.count({2, 3, 3, 0, 1, 2, 3}), 1);

  write({0, 4});
  EXPECT_THAT(
      std::string(
          CheckedOperands::Create(op, shape, *device).status().message()),
      HasSubstr("ids.npy: value 1 is 4, expected 0 to 3 for operand \"ids\""));
  EXPECT_TRUE(absl::IsNotFound(
      CheckedOperands::Create(Pick("/no/such.npy"), shape, *device).status()));
}

}  // namespace
}  // namespace optrail::ops
