// Every case of ONNX's own all of whose operators the import claims must be
// imported whole and give the result that the case holds, by the reference.
// Skipped, with a note, where the cases are not installed. (What runs on the
// CPU: graph/runner/conformance_test.cc.)

#include <iostream>

#include "base/status_macros.h"
#include "graph/onnx/testing/conformance_cases.h"
#include "graph/reference/reference.h"
#include "gtest/gtest.h"

namespace optrail::graph {
namespace {

absl::Status RunCase(const std::string& folder) {
  OPTRAIL_ASSIGN_OR_RETURN(const ConformanceCase one,
                           LoadConformanceCase(folder));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<Array> outputs,
                           RunReference(one.graph, one.inputs));
  const std::string mismatch = Mismatch(outputs, one.expected);
  return mismatch.empty() ? absl::OkStatus() : absl::InternalError(mismatch);
}

TEST(ConformanceTest, EveryCaseOfAClaimedOperatorPasses) {
  const auto cases = FindConformanceCases();
  if (absl::IsNotFound(cases.status())) GTEST_SKIP() << cases.status();
  ASSERT_TRUE(cases.ok()) << cases.status();
  int passed = 0;
  for (const std::string& folder : cases->claimed) {
    const absl::Status status = RunCase(folder);
    passed += status.ok() ? 1 : 0;
    EXPECT_TRUE(status.ok()) << folder << ": " << status;
  }
  for (const auto& [folder, why] : cases->exempt) {
    EXPECT_FALSE(RunCase(folder).ok()) << folder << " passes, though " << why;
  }
  std::cout << "conformance: " << passed << " passed, "
            << cases->claimed.size() - passed << " failed, "
            << cases->exempt.size() << " of claimed operators not claimed, "
            << cases->not_claimed << " of operators that are not claimed\n";
  EXPECT_GT(passed, 400);
}

}  // namespace
}  // namespace optrail::graph
