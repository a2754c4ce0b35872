// Prints the table of docs/method/tuning_sessions.md: what the proof of winners
// does under recorded noise.
//
//   ./bazelw run //tuning/session/evaluation:proof_evaluation --
//       --processes=$PWD/base/stats/testdata/processes_xeon_2c.tsv
//       --recordings=$PWD/tuning/replay/recordings/data

#include <cstdio>
#include <iostream>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "base/stats/statistics.h"
#include "tuning/session/evaluation/recorded_noise.h"
#include "tuning/session/evaluation/simulated_sessions.h"

ABSL_FLAG(std::string, processes, "", "Table of process medians.");
ABSL_FLAG(std::string, recordings, "", "Folder of recorded spaces.");
ABSL_FLAG(int, sessions, 2000, "Sessions per line.");
ABSL_FLAG(uint64_t, seed, 1, "Seed of the first session.");
ABSL_FLAG(int, finalists, optrail::tuning::SessionSetup().finalists,
          "How many configs are ranked.");
ABSL_FLAG(int, rank_rounds, optrail::tuning::SessionSetup().rank_rounds,
          "Readings of each of them, on average.");
ABSL_FLAG(int, max_rounds, optrail::tuning::ProofOptions().max_rounds,
          "Cap on the rounds of a proof.");
ABSL_FLAG(absl::Duration, search_time, absl::ZeroDuration(),
          "What a search takes; its proof ends when its time is spent. 0: "
          "proofs are never short of time.");
ABSL_FLAG(absl::Duration, reading_time,
          optrail::tuning::SimulationOptions().reading_time,
          "What a reading after the search takes, with opening its process; a "
          "round of a proof is two.");

namespace {

using optrail::tuning::Half;
using optrail::tuning::RecordedNoise;

double Percent(int part, int all) { return 100. * part / all; }

void Print(const char* name, const RecordedNoise& noise, Half half) {
  for (const double gain : {0., .02, .05, .3, .67}) {
    for (const bool all_gain : {true, false}) {
      // Large gains: what their proof costs; they are found.
      if (all_gain ? gain == 0 : gain > .05) continue;
      optrail::tuning::SimulationOptions options;
      options.sessions = absl::GetFlag(FLAGS_sessions);
      options.seed = absl::GetFlag(FLAGS_seed);
      options.gain = gain;
      options.all_gain = all_gain;
      options.finalists = absl::GetFlag(FLAGS_finalists);
      options.rank_rounds = absl::GetFlag(FLAGS_rank_rounds);
      options.proof.max_rounds = absl::GetFlag(FLAGS_max_rounds);
      options.search_time = absl::GetFlag(FLAGS_search_time);
      options.reading_time = absl::GetFlag(FLAGS_reading_time);
      const auto result = Simulate(noise, options);
      std::printf(
          "| %s, %s | %.0f%% | %s | %.2f%% | %.2f%% | %.1f%% | %.1f%% | %.1f%% "
          "| %.2f%% | %.0f | %.0f | %.1f | %.0f |\n",
          name, half == Half::kFit ? "fitted" : "judged", 100 * gain,
          gain == 0  ? "none"
          : all_gain ? "15 of 15"
                     : "1 of 15",
          Percent(result.claimed, result.sessions),
          100 * optrail::ClopperPearsonUpper(result.claimed, result.sessions,
                                             .95),
          Percent(result.old_rule, result.sessions),
          Percent(result.covering, result.proofs),
          Percent(result.narrow, result.proofs), 100 * result.mean_half_width,
          result.mean_rounds, result.p95_rounds,
          absl::ToDoubleSeconds(result.mean_proof_time),
          result.mean_rank_readings);
      std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  std::printf(
      "| noise | true gain | of | claimed | upper 95%% | before | covered | "
      "within 1%% | half width | rounds | p95 | s | rank readings |\n"
      "|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  for (const Half half : {Half::kFit, Half::kJudge}) {
    for (const bool processes : {true, false}) {
      const std::string path =
          absl::GetFlag(processes ? FLAGS_processes : FLAGS_recordings);
      if (path.empty()) continue;
      const auto noise = processes ? RecordedNoise::FromProcesses(path, half)
                                   : RecordedNoise::FromRecordings(path, half);
      if (!noise.ok()) {
        std::cerr << noise.status().message() << "\n";
        return 2;
      }
      Print(processes ? "CPU processes" : "GPU repeats", *noise, half);
    }
  }
}
