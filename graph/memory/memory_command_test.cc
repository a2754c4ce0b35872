#include "graph/memory/memory_command.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/file/file.h"

namespace optrail::graph {
namespace {

class MemoryCommandTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = JoinPath(testing::TempDir(), name);
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return path;
  }

  // The example of MiniMalloc's README.
  const std::string example_ =
      "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\n"
      "b5,0,21,4\n";
  std::ostringstream out_;
};

TEST_F(MemoryCommandTest, PlansAFileThatItsOwnCheckAccepts) {
  MemoryPlanCommand plan;
  plan.path = Write("example.csv", example_);
  plan.out = JoinPath(testing::TempDir(), "placed.csv");
  plan.options.capacity_bytes = 12;
  plan.format = OutputFormat::kCsv;
  EXPECT_EQ(*RunMemoryPlan(plan, out_), ExitCode::kOk);
  EXPECT_EQ(out_.str().substr(0, out_.str().find('\n')),
            "buffers,lower_bound_bytes,arena_bytes,capacity_bytes,"
            "fragmentation,proof,processor_time_ns,method");
  EXPECT_NE(out_.str().find("\n5,12,12,12,0,minimal,"), std::string::npos)
      << out_.str();
  MemoryCheckCommand check;
  check.path = plan.out;
  check.capacity_bytes = 12;
  EXPECT_EQ(*RunMemoryCheck(check, out_), ExitCode::kOk);
  check.capacity_bytes = 11;
  EXPECT_EQ(*RunMemoryCheck(check, out_), ExitCode::kCheckFailed);
}

TEST_F(MemoryCommandTest, FailsWhereTheCapacityIsImpossible) {
  MemoryPlanCommand plan;
  plan.path = Write("example.csv", example_);
  plan.options.capacity_bytes = 11;
  EXPECT_EQ(*RunMemoryPlan(plan, out_), ExitCode::kCheckFailed);
  EXPECT_NE(out_.str().find("infeasible"), std::string::npos) << out_.str();
}

TEST_F(MemoryCommandTest, ChecksAPlacementThatOverlaps) {
  MemoryCheckCommand check;
  check.path = Write("overlap.csv",
                     "id,lower,upper,size,offset\na,0,2,4,0\nb,1,2,4,2\n");
  EXPECT_EQ(*RunMemoryCheck(check, out_), ExitCode::kCheckFailed);
  EXPECT_NE(out_.str().find("overlaps"), std::string::npos) << out_.str();
}

TEST_F(MemoryCommandTest, NamesTheFileInErrors) {
  MemoryCheckCommand check;
  check.path = Write("example.csv", example_);
  const std::string message(RunMemoryCheck(check, out_).status().message());
  EXPECT_NE(message.find("example.csv: no column \"offset\""),
            std::string::npos)
      << message;
  MemoryPlanCommand plan;
  plan.path = Write("large.csv",
                    "id,lower,upper,size\na,0,1,1152921504606846976\n"
                    "b,0,1,1\n");
  EXPECT_NE(RunMemoryPlan(plan, out_).status().message().find("large.csv: "),
            std::string::npos);
}

}  // namespace
}  // namespace optrail::graph
