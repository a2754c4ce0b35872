// Counted calls of optrail.h. A process counts from one moment on until its
// end, so that the tests stand in their order.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lib/optrail.h"
#include "lib/test_handles.h"
#include "tuning/observed/observed_file.h"

namespace optrail::c_program {
namespace {

using ::testing::HasSubstr;
using tuning::ObservedRow;
using tuning::ObservedSource;

constexpr char kShape[] = "rows=6,cols=40/f32";

std::string Folder(const std::string& name) {
  return testing::TempDir() + "/calls/" + name;
}

bool InChild(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

std::vector<ObservedRow> Rows(const std::string& folder) {
  const auto rows = tuning::ReadObservedFiles({folder});
  EXPECT_TRUE(rows.ok()) << rows.status();
  return rows.value_or(std::vector<ObservedRow>());
}

bool LooksUp(const optrail_store* store, const char* shape) {
  const optrail_problem problem = ProblemOf("softmax", shape);
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  return optrail_lookup(store, &problem, &choice) == OPTRAIL_OK;
}

TEST(Observe, BeginsByTheEnvironment) {
  const std::string folder = Folder("environment");
  setenv("OPTRAIL_OBSERVE", folder.c_str(), 1);
  EXPECT_TRUE(InChild([] {
    const Store store;
    for (int i = 0; i < 3; ++i) LooksUp(store, kShape);
    return optrail_observe("elsewhere", 0) == OPTRAIL_FAILED_PRECONDITION;
  }));
  const std::vector<ObservedRow> rows = Rows(folder);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].key.op, "softmax");
  EXPECT_EQ(rows[0].key.shape, kShape);
  EXPECT_EQ(rows[0].key.hardware_id, HardwareId());
  EXPECT_EQ(rows[0].lookups, 3);

  setenv("OPTRAIL_OBSERVE", "/dev/null/calls", 1);
  // A service that cannot count goes on, and says why nobody counts.
  EXPECT_TRUE(InChild([] {
    const Store store;
    return LooksUp(store, kShape) &&
           optrail_observe(nullptr, 0) == OPTRAIL_FAILED_PRECONDITION &&
           std::strstr(optrail_message(), "OPTRAIL_OBSERVE=/dev/null/calls: ");
  }));
  // Nor does the limit of a file's size end the process.
  setenv("OPTRAIL_OBSERVE", Folder("small").c_str(), 1);
  EXPECT_TRUE(InChild([] {
    const rlimit limit = {8192, 8192};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Store store;
    return LooksUp(store, kShape) &&
           optrail_observe(nullptr, 0) == OPTRAIL_FAILED_PRECONDITION &&
           std::strstr(optrail_message(), "no room");
  }));
  setenv("OPTRAIL_OBSERVE", folder.c_str(), 1);
  setenv("OPTRAIL_OBSERVE_TIME", "yes", 1);
  EXPECT_TRUE(InChild([] {
    const optrail_problem problem = ProblemOf("softmax", kShape);
    optrail_plan* plan = nullptr;
    return optrail_plan_create(nullptr, &problem, nullptr, &plan) ==
               OPTRAIL_OK &&
           optrail_observe(nullptr, 0) == OPTRAIL_FAILED_PRECONDITION &&
           std::strstr(optrail_message(), "expected 0 or 1");
  }));
  unsetenv("OPTRAIL_OBSERVE");
  unsetenv("OPTRAIL_OBSERVE_TIME");
}

TEST(Observe, BadCallsAreRefused) {
  EXPECT_EQ(optrail_observe(nullptr, 0), OPTRAIL_FAILED_PRECONDITION);
  EXPECT_THAT(optrail_message(), HasSubstr("not counted"));
  EXPECT_EQ(optrail_observe("", 0), OPTRAIL_INVALID_ARGUMENT);
  EXPECT_EQ(optrail_observe(Folder("flags").c_str(), 4),
            OPTRAIL_INVALID_ARGUMENT);
  EXPECT_THAT(optrail_message(), HasSubstr("flags is 4"));
  EXPECT_NE(optrail_observe("/dev/null/calls", 0), OPTRAIL_OK);
  EXPECT_THAT(optrail_message(), HasSubstr("/dev/null/calls"));
}

TEST(Observe, LookupsAndRunsAreCounted) {
  const std::string folder = Folder("counted");
  const Store store;
  // Made before anything was counted.
  const Plan plan(store, ProblemOf("softmax", kShape));
  ASSERT_TRUE(LooksUp(store, kShape));
  ASSERT_EQ(optrail_observe(folder.c_str(), OPTRAIL_OBSERVE_TIME), OPTRAIL_OK)
      << optrail_message();
  EXPECT_EQ(optrail_observe(nullptr, 0), OPTRAIL_OK);

  std::vector<float> x(240, 1), y(240);
  void* operands[] = {x.data(), y.data()};
  optrail_call call = OPTRAIL_CALL_INIT;
  call.operands = operands;
  call.operand_count = 2;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(optrail_run(plan, &call), OPTRAIL_OK);
    ASSERT_TRUE(LooksUp(store, kShape));
  }
  // The child counts into the same file.
  EXPECT_TRUE(InChild([&] {
    return LooksUp(store, kShape) && optrail_run(plan, &call) == OPTRAIL_OK &&
           LooksUp(store, "rows=9,cols=9/f32");
  }));
  call.operand_count = 1;
  EXPECT_EQ(optrail_run(plan, &call), OPTRAIL_INVALID_ARGUMENT);
  // The same shape, and a default that its text names.
  optrail_problem problem =
      ProblemOf("conv2d", "n=1,h=7,w=6,c=5,k=4,r=3,s=3/stride=1/f32");
  optrail_choice choice = OPTRAIL_CHOICE_INIT;
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK)
      << optrail_message();
  problem.shape = "n=1,h=7,w=6,c=5,k=4,r=3,s=3/f32";
  ASSERT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_OK);
  problem.flags = OPTRAIL_EXACT_ONLY;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_NOT_FOUND);
  }
  problem.op = "nobodys";
  EXPECT_EQ(optrail_lookup(store, &problem, &choice), OPTRAIL_NOT_FOUND);

  int64_t runs = 0, lookups = 0, refused = 0, convolutions = 0;
  for (const ObservedRow& row : Rows(folder)) {
    EXPECT_NE(row.key.op, "nobodys");
    if (row.key.source == ObservedSource::kRefused) {
      refused += row.lookups;
      continue;
    }
    EXPECT_EQ(row.key.source, ObservedSource::kDefault);
    if (row.key.op == "conv2d") {
      convolutions += row.lookups;
      EXPECT_EQ(row.key.shape, "n=1,h=7,w=6,c=5,k=4,r=3,s=3/f32");
      continue;
    }
    runs += row.runs;
    lookups += row.lookups;
    EXPECT_EQ(row.timed_runs, row.runs);
    EXPECT_EQ(row.ns > 0, row.runs > 0);
  }
  EXPECT_EQ(runs, 6);
  EXPECT_EQ(lookups, 7);
  EXPECT_EQ(refused, 3);
  EXPECT_EQ(convolutions, 2);
}

}  // namespace
}  // namespace optrail::c_program
