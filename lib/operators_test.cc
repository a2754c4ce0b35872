// Every operator by the functions of optrail.h, on operands that lie anywhere
// their elements may lie, against its reference.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/optrail.h"
#include "ops/core/compare.h"
#include "ops/core/data_type.h"
#include "ops/core/reference_check.h"
#include "ops/core/registry.h"
#include "ops/core/smaller_shape.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/shapes.h"

namespace optrail {
namespace {

constexpr double kFlop = 2e6;  // of a shape that is tried, about

// The least shape of the operator's file, made smaller, in each combination of
// data types.
std::vector<proto::Shape> ShapesOf(const ops::OperatorEntry& entry) {
  const auto shapes =
      tuning::ParseShapes(entry.shapes.contents, entry.shapes.path);
  EXPECT_TRUE(shapes.ok()) << shapes.status();
  const auto least = std::min_element(
      shapes->begin(), shapes->end(), [&](const auto& a, const auto& b) {
        return entry.op->Flop(a.shape) < entry.op->Flop(b.shape);
      });
  proto::Shape shape = least->shape;
  const double flop = entry.op->Flop(shape);
  if (flop > kFlop) {
    shape = ops::SmallerShape(*entry.op, shape, kFlop / flop).value_or(shape);
  }
  std::vector<proto::Shape> all;
  for (const auto& types : entry.op->data_types()) {
    shape.clear_data_types();
    for (const proto::DataType type : types) shape.add_data_types(type);
    all.push_back(shape);
  }
  return all;
}

// An operand's memory that begins `offset` bytes behind a multiple of 64.
class Memory {
 public:
  Memory(size_t bytes, size_t offset) : bytes_(bytes + offset + 64, 0x5a) {
    data_ = bytes_.data();
    while (reinterpret_cast<uintptr_t>(data_) % 64 != 0) ++data_;
    data_ += offset;
  }
  void* data() { return data_; }

 private:
  std::vector<char> bytes_;
  char* data_;
};

void Check(const ops::OperatorEntry& entry, const proto::Shape& shape,
           size_t offset_elements, int threads_count) {
  const std::string text = tuning::CanonicalText(shape);
  const std::string name = entry.op->name();
  optrail_problem problem = OPTRAIL_PROBLEM_INIT;
  problem.op = name.c_str();
  problem.shape = text.c_str();
  problem.threads = threads_count;
  optrail_plan* plan = nullptr;
  const optrail_status made =
      optrail_plan_create(nullptr, &problem, nullptr, &plan);
  if (made == OPTRAIL_UNSUPPORTED) return;  // these data types
  ASSERT_EQ(made, OPTRAIL_OK) << optrail_message();
  const auto specs = entry.op->Operands(shape);
  ASSERT_TRUE(specs.ok()) << specs.status();
  std::vector<std::vector<double>> values;
  std::vector<Memory> memory;
  std::vector<void*> operands;
  for (size_t i = 0; i < specs->size(); ++i) {
    const ops::OperandSpec& spec = (*specs)[i];
    const size_t element = tuning::DataTypeBytes(spec.data_type);
    memory.emplace_back(spec.size_bytes(), offset_elements * element);
    operands.push_back(memory.back().data());
    values.push_back(ops::RandomValues(spec, 10 + i));
    if (spec.role == ops::Role::kOutput) continue;
    ops::EncodeValues(spec.data_type, values.back(), operands.back());
  }
  optrail_threads* threads = nullptr;
  ASSERT_EQ(optrail_threads_create(threads_count, &threads), OPTRAIL_OK);
  optrail_call call = OPTRAIL_CALL_INIT;
  call.operands = operands.data();
  call.operand_count = operands.size();
  call.threads = threads;
  ASSERT_EQ(optrail_run(plan, &call), OPTRAIL_OK) << optrail_message();
  const std::vector<std::vector<double>> expected =
      entry.op->Reference(shape, values);
  size_t result = 0;
  for (size_t i = 0; i < specs->size(); ++i) {
    const ops::OperandSpec& spec = (*specs)[i];
    if (spec.role == ops::Role::kInput) continue;
    const ops::CompareResult compared =
        ops::Compare(spec.data_type, operands[i], expected[result++],
                     entry.op->ToleranceFor(shape));
    EXPECT_TRUE(compared.ok())
        << spec.name << " differs at " << compared.wrong_count << " places";
  }
  optrail_threads_destroy(threads);
  optrail_plan_destroy(plan);
}

// The shape that optrail_infer_shape() finds from the inputs of `shape`.
std::string Inferred(const ops::Operator& op, const proto::Shape& shape,
                     optrail_status* status) {
  const std::string text = tuning::CanonicalText(shape);
  std::vector<optrail_operand> inputs;
  size_t count = 1;
  for (size_t i = 0; i < count; ++i) {
    optrail_operand operand = OPTRAIL_OPERAND_INIT;
    EXPECT_EQ(optrail_shape_operand(op.name().c_str(), text.c_str(), i,
                                    &operand, &count),
              OPTRAIL_OK)
        << optrail_message();
    if (operand.role != OPTRAIL_OUTPUT) inputs.push_back(operand);
  }
  const size_t first = text.find('/'), last = text.rfind('/');
  const std::string attributes =
      first == last ? "" : text.substr(first + 1, last - first - 1);
  char inferred[1024] = "";
  *status = optrail_infer_shape(op.name().c_str(), inputs.data(), inputs.size(),
                                attributes.c_str(), inferred, sizeof(inferred));
  return inferred;
}

TEST(Operators, ShapesFollowFromInputs) {
  std::string untold;
  for (const ops::OperatorEntry* entry : ops::Registry::Get().List()) {
    for (const proto::Shape& shape : ShapesOf(*entry)) {
      SCOPED_TRACE(entry->op->name() + " " + tuning::CanonicalText(shape));
      optrail_status status = OPTRAIL_OK;
      const std::string inferred = Inferred(*entry->op, shape, &status);
      if (status == OPTRAIL_UNSUPPORTED) {
        untold += (untold.empty() ? "" : " ") + entry->op->name();
        break;
      }
      EXPECT_EQ(status, OPTRAIL_OK) << optrail_message();
      EXPECT_EQ(inferred, tuning::CanonicalText(shape));
    }
  }
  // Their inputs leave a dimension open.
  EXPECT_EQ(untold, "");
}

TEST(Operators, AreRightOnOperandsThatLieAnywhere) {
  int shapes = 0;
  for (const ops::OperatorEntry* entry : ops::Registry::Get().List()) {
    for (const proto::Shape& shape : ShapesOf(*entry)) {
      ++shapes;
      // Whole cache lines, as NumPy aligns, and one element beside.
      for (const size_t offset : {0, 4, 1}) {
        SCOPED_TRACE(entry->op->name() + " " + tuning::CanonicalText(shape) +
                     " offset " + std::to_string(offset));
        Check(*entry, shape, offset, 1);
        Check(*entry, shape, offset, 2);
      }
    }
  }
  EXPECT_GE(shapes, 19);
}

}  // namespace
}  // namespace optrail
