// Compiling ahead with the test backend whose compiler misbehaves; this binary
// is its own compiler process.

#include "suites/tune/compile_ahead.h"

#include "base/file/file.h"
#include "gtest/gtest.h"
#include "ops/core/device_type.h"
#include "suites/worker/worker.h"

namespace optrail::suites {
namespace {

TEST(CompileAhead, FillsTheCacheAndTellsWhatFailed) {
  TaskSelection selection;
  selection.op_regex = "faulty";
  selection.backend = "compiled";
  selection.with_test_only = true;
  RunContext context;
  context.hardware = *ops::HardwareOf(proto::CPU);
  const auto tasks = SelectTasks(selection, context.hardware);
  ASSERT_TRUE(tasks.ok()) << tasks.status();
  const auto store = tuning::TunedConfigStore::Load({});
  ASSERT_TRUE(store.ok()) << store.status();
  CompileAheadOptions options;
  options.worker.shared_folder = JoinPath(::testing::TempDir(), "ahead");
  options.worker.compile_deadline = absl::Seconds(2);
  options.worker.max_compiler_bytes = int64_t{256} << 20;
  ASSERT_TRUE(CreateDirectories(options.worker.shared_folder).ok());
  // Nothing but the default, which compiles.
  options.trials = 0;
  auto compiled = CompileAhead({tasks->at(0)}, context, *store, options);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ASSERT_EQ(compiled->size(), 1);
  EXPECT_EQ(compiled->at(0).error, "");
  EXPECT_EQ(compiled->at(0).compiled, 1) << compiled->at(0).first_failure;
  EXPECT_EQ(compiled->at(0).failed, 0);
  EXPECT_GT(compiled->at(0).compile_ns, 0);
  // Again, and beside a task that was not compiled.
  selection.shape_regex = "n=100/f32";
  const auto others = SelectTasks(selection, context.hardware);
  ASSERT_TRUE(others.ok()) << others.status();
  compiled =
      CompileAhead({tasks->at(0), others->at(0)}, context, *store, options);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  ASSERT_EQ(compiled->size(), 2);
  EXPECT_EQ(compiled->at(0).known, 1);
  EXPECT_EQ(compiled->at(0).compiled, 0);
  EXPECT_EQ(compiled->at(1).error, "");
  EXPECT_EQ(compiled->at(1).failed, 0) << compiled->at(1).first_failure;
  // The whole space: what is known is not compiled again, and what fails keeps
  // nothing from the others.
  options.trials = 56;
  options.strategy = "random";
  compiled = CompileAhead({tasks->at(0)}, context, *store, options);
  ASSERT_TRUE(compiled.ok()) << compiled.status();
  EXPECT_EQ(compiled->at(0).known, 1);
  EXPECT_GT(compiled->at(0).compiled, 0);
  EXPECT_GT(compiled->at(0).failed, 0);
  EXPECT_NE(compiled->at(0).first_failure, "");
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  if (optrail::suites::IsWorker(argc, argv)) {
    return optrail::suites::RunWorker(argc, argv);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
