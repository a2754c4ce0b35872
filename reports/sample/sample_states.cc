#include "reports/sample/sample_states.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/random.h"
#include "base/stats/statistics.h"

namespace optrail::reports {
namespace {

constexpr int kProcesses = 5;
constexpr int kSamples = 10;

// The story of one benchmark. Commits are counted from the first one, or from
// the newest one where they are negative: -1 is the newest.
struct Story {
  const char* name;
  double time_ns;
  int from = 0;       // the first commit that has it
  int until = 0;      // the first that lacks it again; 0: none
  int change = 0;     // where its level changes; 0: nowhere
  double factor = 1;  // by how much
  int back = 0;       // where the change is undone; 0: nowhere
  double noise = .004;
};

constexpr Story kStories[] = {
    {"BM_Parse/64", 2.1e3},
    {"BM_Parse/4096", 1.3e5, 0, 0, 37, 1.12},
    {"BM_ParseStrict/4096", 1.6e5, 0, 0, 37, 1.09},
    {"BM_Scan/4096", 4.4e4, 0, 0, 48, .85},
    {"BM_Hash/1024", 8.2e2, 0, 0, 24, 1.15},        // acknowledged
    {"BM_Sort/1024", 3.4e4, 0, 0, 30, 1.05},        // expected
    {"BM_Encode/512", 6.1e3, 0, 0, 27, 1.2},        // muted
    {"BM_Copy/65536", 2.9e3, 0, 0, 40, 1.1},        // the machine, by its loops
    {"BM_Flush", 9.7e5, 0, 0, 20, 1.2, 42},         // undone
    {"BM_Compact", 3.1e6},                          // between two levels
    {"BM_BuildIndex", 5.2e6, 0, 0, 0, 1, 0, .012},  // creeps
    {"BM_Write/512", 7.7e3, 0, 0, -3, 1.08, 0, .003},  // not confirmed yet
    {"BM_ReadFile/512", 5.9e3, 0, 46},                 // renamed, and slower
    {"BM_ReadFileBytes/512", 5.9e3 * 1.12, 46},
    {"BM_CloseHandle", 4.1e2, 0, -1},  // renamed by the newest
    {"BM_CloseHandles", 4.1e2, -1},
    {"BM_Lock/contended", 1.1e4, 0, 0, 0, 1, 0, .2},
    {"BM_Stream/1", 8.8e4, -9},              // too few points
    {"BM_Compress/fast", 2.6e5, -1},         // new
    {"BM_Decode/512", 5.5e3},                // crashes
    {"BM_Checksum/512", 1.2e3},              // wrong
    {"BM_Seek", 6.6e2, 0, -1},               // missing
    {"BM_Query", 1.9e5},                     // changes its meaning
    {"BM_Request", 7.1e5},                   // most samples
    {"BM_Allocate", 9.3e1},                  // disturbed
    {"BM_Merge/4096", 3.0e4, 0, 0, -1, .8},  // faster, by the newest
    {"BM_Encrypt/avx512", 1.0e3, -1},        // skipped
};

int PlaceOf(int commit, int commits) {
  return commit < 0 ? commits + commit : commit;
}

// The level of a story at a commit, relative to its first.
double LevelOf(const Story& story, int position, int commits) {
  const std::string name = story.name;
  if (name == "BM_Compact") return position / 15 % 2 == 1 ? 1.08 : 1;
  if (name == "BM_BuildIndex") return 1 + .1 * position / commits;
  const bool changed = story.change != 0 &&
                       position >= PlaceOf(story.change, commits) &&
                       (story.back == 0 || position < story.back);
  return changed ? story.factor : 1;
}

void AddProcess(const Story& story, double level_ns, bool tail, int64_t unix_ns,
                double memory_ns, Rng& rng, proto::BenchmarkResult* result) {
  proto::Measurement* process = result->add_measurements();
  process->set_started_unix_ns(unix_ns);
  // Short times are taken of many calls, since samples are whole nanoseconds.
  const int64_t calls =
      std::max<int64_t>(1, static_cast<int64_t>(1e6 / level_ns));
  process->set_calls_per_sample(calls);
  const double own = level_ns * std::exp(story.noise * rng.Gaussian());
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i) {
    const double ns = own * (1 + .004 * i) * (tail && i >= 2 ? 1.3 : 1);
    process->add_sample_ns(static_cast<int64_t>(ns * calls));
    samples.push_back(ns);
  }
  process->set_median_ns(Median(samples));
  process->set_clean_sample_count(kSamples);
  for (const char* loop : {"arithmetic", "memory"}) {
    proto::Calibration* calibration =
        process->mutable_conditions()->add_calibrations();
    calibration->set_loop(loop);
    calibration->set_time_ns((loop[0] == 'm' ? memory_ns : 100) *
                             std::exp(.002 * rng.Gaussian()));
  }
}

void AddResult(const Story& story, int position, const SampleOptions& options,
               proto::Run& run) {
  const int commits = options.commits;
  const bool newest = position == commits - 1;
  if (position < PlaceOf(story.from, commits)) return;
  if (story.until != 0 && position >= PlaceOf(story.until, commits)) return;
  const std::string name = story.name;
  proto::BenchmarkResult* result = run.add_results();
  result->mutable_key()->set_operator_name(name);
  if (name == "BM_Query") result->mutable_key()->set_version(newest ? 2 : 1);
  if (newest) {
    const auto fail = [&](proto::Outcome outcome, const char* detail) {
      result->set_outcome(outcome);
      result->set_detail(detail);
    };
    if (name == "BM_Decode/512") {
      return fail(proto::CRASHED, "killed by signal 11 (Segmentation fault)");
    }
    if (name == "BM_Checksum/512") {
      return fail(proto::WRONG_RESULT, "sum 0x1f2e, expected 0x1f2f");
    }
    if (name == "BM_Encrypt/avx512") {
      return fail(proto::UNSUPPORTED, "needs AVX-512");
    }
    if (name == "BM_Allocate") {
      return fail(proto::CONTENDED, "1 of 10 samples was undisturbed");
    }
  }
  result->set_outcome(proto::OK);
  Rng rng(options.seed * 6007 + position * 64 + (&story - kStories));
  const bool machine = name == "BM_Copy/65536";
  const double level = LevelOf(story, position, commits);
  const double shared = std::exp(.3 * story.noise * rng.Gaussian());
  for (int p = 0; p < kProcesses; ++p) {
    AddProcess(story, story.time_ns * level * shared,
               newest && name == "BM_Request",
               run.started_unix_ns() + p * int64_t{100000000},
               machine ? 100 * level : 100, rng, result);
  }
}

}  // namespace

std::vector<proto::Run> MakeStateRuns(const SampleOptions& options) {
  std::vector<proto::Run> runs;
  for (int position = 0; position < options.commits; ++position) {
    // On the first hardware, after the operators.
    proto::Run run = MakeRunHeader(options, position, 0);
    run.set_suite("server_benchmark");
    run.set_started_unix_ns(run.started_unix_ns() + kHourNs / 20);
    run.set_run_id(SampleRecordId(run.started_unix_ns(), 500000 + position));
    for (const Story& story : kStories) {
      AddResult(story, position, options, run);
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

std::vector<proto::TriageRecord> MakeAnswers(const SampleOptions& options) {
  const int64_t now = options.end_unix_ns + kHourNs;
  std::vector<proto::TriageRecord> records;
  const auto answer = [&](proto::TriageKind kind, const char* pattern,
                          int position, const char* text) {
    proto::TriageRecord record;
    record.set_created_unix_ns(now);
    record.set_record_id(SampleRecordId(now, 700000 + records.size()));
    record.set_kind(kind);
    record.set_pattern(pattern);
    record.set_text(text);
    if (kind == proto::MUTE) {
      record.set_until_unix_ns(now + 24 * 60 * kHourNs);
    } else {
      *record.mutable_commit() = MakeCommit(options, position);
    }
    if (kind == proto::EXPECT) record.set_effect(.08);
    records.push_back(std::move(record));
  };
  answer(proto::ACKNOWLEDGE, "BM_Hash/.*", 24, "safe against flooding now");
  answer(proto::ACKNOWLEDGE, "BM_Compact", 15, "the disk has two speeds");
  answer(proto::EXPECT, "BM_Sort/.*", 30, "the order is stable now");
  answer(proto::MUTE, "BM_Encode/.*", 0, "being rewritten");
  answer(proto::MUTE, "conv2d/cuda.*", 0,
         "crashes with this driver; an update is on its way");
  // The compiler changed on one machine halfway.
  answer(proto::NOTE, ".*intel-xeon-spr-4c.*", options.commits / 2,
         "a newer compiler from here on");
  return records;
}

}  // namespace optrail::reports
