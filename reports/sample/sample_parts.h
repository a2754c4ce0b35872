#ifndef OPTRAIL_REPORTS_SAMPLE_SAMPLE_PARTS_H_
#define OPTRAIL_REPORTS_SAMPLE_SAMPLE_PARTS_H_

// The machines, operators and commits that the made-up runs and sessions share.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tracker/proto/run.pb.h"
#include "tuning/proto/context.pb.h"

namespace optrail::reports {

struct SampleOptions {
  int commits = 60;
  int shapes_per_operator = 2;
  int processes = 5;
  int sessions = 6;
  int trials_per_session = 240;
  uint64_t seed = 1;
  // When the last commit was made.
  int64_t end_unix_ns = int64_t{1792000000} * 1000000000;
  // Adds a benchmark, commits and configs with names that try to break out of
  // the page.
  bool hostile_names = false;
  // Adds what people have said, a session of `tune --command`, and a suite with
  // a benchmark for each verdict and state (sample_states.h); needs 60 commits.
  bool states = false;
};

// The names that hostile_names adds.
std::vector<std::string> HostileNames();

inline constexpr int64_t kHourNs = int64_t{3600} * 1000000000;
inline constexpr int64_t kCommitEveryNs = 9 * kHourNs;

struct SampleHardware {
  const char* id;
  const char* model;
  proto::DeviceKind device;
  int cores;
  double speed;  // relative to the first
  double noise;  // standard deviation between processes, relative
};

inline constexpr SampleHardware kSampleHardware[] = {
    {"amd-epyc-zen4-8c", "AMD EPYC 9V74", proto::CPU, 8, 1, 0.008},
    {"intel-xeon-spr-4c", "Intel Xeon Platinum 8481C", proto::CPU, 4, 0.7,
     0.016},
    {"nvidia-h200", "NVIDIA H200", proto::CUDA, 132, 22, 0.005},
};
inline constexpr int kSampleHardwareCount = 3;

// The ceilings of the first hardware, all threads.
inline constexpr double kSamplePeak = 4.1e11;
inline constexpr double kSampleBandwidth = 1.9e11;

struct SampleOperator {
  const char* name;
  std::vector<std::pair<const char*, int64_t>> dims;
  double time_ns;  // default config, first shape, first hardware
  double tuned_speedup;
  double roofline;
  double flop_per_byte;  // 0: nobody counted them
};

std::vector<SampleOperator> SampleOperators();

// "20261006T101112Z-0123456789ab".
std::string SampleRecordId(int64_t unix_ns, uint64_t seed);

// Positions count commits from 0.
int64_t CommitTime(const SampleOptions& options, int position);
proto::Commit MakeCommit(const SampleOptions& options, int position);

proto::Hardware MakeHardware(const SampleHardware& sample);
proto::Toolchain MakeToolchain(bool newer);
proto::Shape MakeShape(const SampleOperator& op, int index);

// A run without results; `hardware` is a place in kSampleHardware.
proto::Run MakeRunHeader(const SampleOptions& options, int position,
                         int hardware);

}  // namespace optrail::reports

#endif  // OPTRAIL_REPORTS_SAMPLE_SAMPLE_PARTS_H_
