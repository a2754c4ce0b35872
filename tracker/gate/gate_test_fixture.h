#ifndef OPTRAIL_TRACKER_GATE_GATE_TEST_FIXTURE_H_
#define OPTRAIL_TRACKER_GATE_GATE_TEST_FIXTURE_H_

// The history of the gate's tests: in memory, of runs that differ by next to
// nothing.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/testing/fault_injecting_file_system.h"
#include "gtest/gtest.h"
#include "tracker/gate/gate.h"
#include "tracker/gate/policy.h"
#include "tracker/history/history.h"

namespace optrail::tracker {

constexpr int64_t kStart = 1795000000LL * 1000000000;
constexpr int64_t kMinute = 60LL * 1000000000;
constexpr char kHardware[] = "amd-epyc-zen4-2c";

// A history in memory whose runs differ by next to nothing.
class GateTest : public ::testing::Test {
 protected:
  GateTest() : history_(*History::Open("/history", &fs_)) {}

  // A run in which each benchmark took `ns` in five processes that differ by
  // 0.1%.
  proto::Run MakeRun(int position, const std::string& branch,
                     const std::vector<std::pair<std::string, double>>& times) {
    proto::Run run;
    run.set_started_unix_ns(kStart + position * kMinute);
    run.set_run_id(NewRecordId(run.started_unix_ns()));
    run.set_suite("smoke");
    run.mutable_hardware()->set_id(kHardware);
    run.mutable_toolchain()->set_compiler("g++ 12.2.0");
    run.mutable_commit()->set_id(CommitId(position));
    run.mutable_commit()->set_branch(branch);
    run.mutable_commit()->set_first_parent_position(position);
    for (const auto& [name, ns] : times) {
      proto::BenchmarkResult* result = run.add_results();
      result->mutable_key()->set_operator_name(name);
      result->set_outcome(proto::OK);
      for (int process = 0; process < 5; ++process) {
        result->add_measurements()->set_median_ns(
            ns * (1 + .001 * ((process + position) % 5 - 2)));
      }
    }
    return run;
  }

  // "00...0a" for 10.
  static std::string CommitId(int position) {
    const std::string digits = std::to_string(position);
    return std::string(40 - digits.size(), '0') + digits;
  }

  void Record(const proto::Run& run) {
    const absl::Status appended = history_.AppendRun(run);
    ASSERT_TRUE(appended.ok()) << appended;
  }

  void RecordMain(int runs, double ns = 100) {
    for (int i = 1; i <= runs; ++i) {
      Record(MakeRun(i, "main", {{"a", ns}, {"b", 200}}));
    }
  }

  Policy ParsePolicy(const std::string& text) {
    absl::StatusOr<Policy> policy = Policy::Parse(text, "policy.textproto");
    EXPECT_TRUE(policy.ok()) << policy.status();
    return *std::move(policy);
  }

  GateReport Judged(const std::string& policy = "",
                    const GateOptions& options = {}) {
    absl::StatusOr<GateReport> report =
        Gate(history_, ParsePolicy(policy), options);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *std::move(report) : GateReport();
  }

  absl::Status Error(const GateOptions& options,
                     const std::string& policy = "") {
    return Gate(history_, ParsePolicy(policy), options).status();
  }

  static const GateRow& RowOf(const GateReport& report,
                              const std::string& name) {
    for (const GateRow& row : report.rows) {
      if (row.row.name == name) return row;
    }
    ADD_FAILURE() << "no row " << name;
    static const GateRow none;
    return none;
  }

  FaultInjectingFileSystem fs_;
  History history_;
};

}  // namespace optrail::tracker

#endif  // OPTRAIL_TRACKER_GATE_GATE_TEST_FIXTURE_H_
