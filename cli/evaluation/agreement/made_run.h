#ifndef OPTRAIL_CLI_EVALUATION_AGREEMENT_MADE_RUN_H_
#define OPTRAIL_CLI_EVALUATION_AGREEMENT_MADE_RUN_H_

// MakeRun builds the record of a run from what its benchmarks take.
//
//   RunSpec spec;
//   spec.commit = bench.Commit();
//   spec.position = 12;
//   spec.benchmarks = {{"BM_a", 1000}, {"BM_b", 2000}};
//   bench.Record(MakeRun(spec, &rng));

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "base/random.h"
#include "tracker/proto/run.pb.h"

namespace optrail::agreement {

inline constexpr int64_t kSecondNs = 1'000'000'000;
inline constexpr int64_t kHourNs = 3600 * kSecondNs;
// 2026-01-01: in the past of whoever runs the tests.
inline constexpr int64_t kStartNs = 1'767'225'600 * kSecondNs;

struct MadeBenchmark {
  std::string name;
  double level_ns = 1000;
  proto::Outcome outcome = proto::OK;  // else it has no measurements
  // The time of each sample over the level of its process; empty:
  // ten samples of small noise.
  std::vector<double> sample_shape = {};
};

struct RunSpec {
  std::string suite = "suite";
  std::string hardware = "amd-epyc-zen4-2c";
  std::string commit;  // "": no commit
  std::string branch = "main";
  absl::optional<int64_t> position;
  bool dirty = false;
  int64_t started_unix_ns = kStartNs;
  std::string compiler = "g++ 12.2.0";
  std::string pairing_id;
  int processes = 5;
  double process_noise = .003;  // standard deviation of the logarithm
  double machine = 0;           // the logarithm of what all benchmarks share
  bool calibrated = false;      // loops beside the processes show `machine`
  std::vector<MadeBenchmark> benchmarks;
  // A metric beside time that is better the higher: calls per second.
  bool has_rate = false;
};

proto::Run MakeRun(const RunSpec& spec, Rng* rng);

// A full hash that stands for the commit at `position` of `branch`.
std::string MadeCommit(int64_t position, const std::string& branch = "main");

// The commits from 1 to spec.size() of a branch, a run of each, an hour apart;
// `spec` is that of a position.
template <typename SpecAt>
std::vector<proto::Run> MakeRuns(int commits, const SpecAt& spec, Rng* rng) {
  std::vector<proto::Run> runs;
  for (int position = 1; position <= commits; ++position) {
    RunSpec one = spec(position);
    one.position = position;
    if (one.commit.empty()) one.commit = MadeCommit(position, one.branch);
    if (one.started_unix_ns == kStartNs) {
      one.started_unix_ns += position * kHourNs;
    }
    runs.push_back(MakeRun(one, rng));
  }
  return runs;
}

}  // namespace optrail::agreement

#endif  // OPTRAIL_CLI_EVALUATION_AGREEMENT_MADE_RUN_H_
