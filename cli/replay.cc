// `optrail replay`: search strategies judged on recorded spaces.

#include <iostream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "tracker/command/command_support.h"
#include "tracker/history/history.h"
#include "tuning/replay/energy_replay.h"
#include "tuning/replay/recording.h"
#include "tuning/replay/replay_command.h"
#include "tuning/replay/session_recording.h"

ABSL_FLAG(std::vector<std::string>, spaces, {},
          "Recorded spaces: files or folders of .json, .json.gz and .json.xz.");
ABSL_FLAG(std::vector<std::string>, strategies, {},
          "Names of strategies, or all; by default the default one.");
ABSL_FLAG(std::vector<std::string>, budgets,
          std::vector<std::string>({"50", "100", "200", "400"}),
          "After how many trials the score is taken.");
ABSL_FLAG(int32_t, seeds, 10, "Runs per space and strategy.");
ABSL_FLAG(uint64_t, first_seed, 1, "Seed of the first run.");
ABSL_FLAG(int32_t, batch, 1, "Trials per round.");
ABSL_FLAG(int32_t, jobs, 0, "Threads; 0: one per core.");
ABSL_FLAG(bool, noise, false,
          "A trial answers with one recorded repeat instead of the mean.");
ABSL_FLAG(bool, compile_time_objective, false,
          "Also minimise the compile time; the score is the hypervolume.");
ABSL_FLAG(std::vector<std::string>, transfer, {},
          "Recordings of other devices to start from: for each space those "
          "with the same knobs and another name.");
ABSL_FLAG(int, transfer_trials, 0,
          "Trials of the search by which a source is known; 0: it is known "
          "entirely.");
ABSL_FLAG(bool, shuffle_transfer, false,
          "Permute the results of those recordings: sources that mislead.");
ABSL_FLAG(std::string, prior, "",
          "A recording whose speeds rank the configs before they are tried.");
ABSL_FLAG(int32_t, top_k, 0, "Measure only this many by that rank; 0: all.");
ABSL_FLAG(bool, energy, false,
          "Whole sessions for joules, of recordings that have the energy of "
          "every config, after the first of --budgets trials.");
ABSL_FLAG(std::string, session, "",
          "Print this session of the history as a recorded space, and judge "
          "nothing.");
ABSL_FLAG(double, time_within, 0,
          "With --energy: configs slower than so many times the fastest are no "
          "result, such as 1.05; 0: all are.");

ABSL_FLAG(
    bool, optima, false,
    "With --energy: print what the choice of a config can save at most in "
    "each recording (within --time_within, 1.05 unless given), and judge "
    "nothing.");
ABSL_FLAG(double, joules_noise, 0,
          "With --energy: relative standard deviation of a reading of joules "
          "over a second, such as 0.01; 0: readings are as recorded.");

ABSL_FLAG(double, recorded_noise, 0,
          "With --energy: each run reads every recorded config once more with "
          "this relative standard deviation, and is judged by that and by the "
          "recording: what an optimum costs that rests on one reading.");

namespace optrail::cli {
namespace {

absl::StatusOr<int> PrintSession(const std::string& id) {
  OPTRAIL_ASSIGN_OR_RETURN(const tracker::History history,
                           tracker::OpenHistory(TrackerOptions()));
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Session session,
                           history.ReadSession(id));
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text,
                           tuning::RecordingOf(session));
  std::cout << text;
  return 0;
}

absl::StatusOr<int> ReplayEnergy(const tuning::ReplayCommand& options) {
  tuning::EnergyReplays replays;
  replays.run.trials = options.budgets.front();
  replays.run.seed = options.first_seed;
  replays.run.time_limit = absl::GetFlag(FLAGS_time_within);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      replays.run.time_limit == 0 || replays.run.time_limit >= 1, "time_within",
      replays.run.time_limit, "at least 1, or 0"));
  replays.run.noise = absl::GetFlag(FLAGS_joules_noise);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      replays.run.noise >= 0 && replays.run.noise < 1, "joules_noise",
      replays.run.noise, "at least 0 and below 1"));
  replays.run.recorded_noise = absl::GetFlag(FLAGS_recorded_noise);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      replays.run.recorded_noise >= 0 && replays.run.recorded_noise < 1,
      "recorded_noise", replays.run.recorded_noise, "at least 0 and below 1"));
  replays.seeds = options.seeds;
  replays.jobs = options.jobs;
  if (!options.strategies.empty()) replays.strategies = options.strategies;
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                           tuning::SpacesOf(options));
  for (const std::string& file : files) {
    OPTRAIL_ASSIGN_OR_RETURN(replays.recordings.emplace_back(),
                             tuning::ReadRecording(file));
  }
  if (absl::GetFlag(FLAGS_optima)) {
    constexpr double kTimeLimit = 1.05;
    OPTRAIL_ASSIGN_OR_RETURN(
        const std::string text,
        tuning::DescribeEnergyOptima(
            replays.recordings,
            replays.run.time_limit > 0 ? replays.run.time_limit : kTimeLimit,
            absl::GetFlag(FLAGS_format)));
    std::cout << text;
    return 0;
  }
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::string text,
      tuning::RunEnergyReplays(replays, absl::GetFlag(FLAGS_format)));
  std::cout << text;
  return 0;
}

const std::vector<std::string>& AllFlags() {
  static const auto* const flags = new std::vector<std::string>{
      "spaces",      "strategies",      "budgets",
      "seeds",       "first_seed",      "batch",
      "jobs",        "noise",           "compile_time_objective",
      "transfer",    "transfer_trials", "shuffle_transfer",
      "prior",       "top_k",           "energy",
      "time_within", "joules_noise",    "recorded_noise",
      "optima",      "session",         "history",
      "format"};
  return *flags;
}

suites::FlagUse AllBut(const std::string& call,
                       const std::vector<std::string>& unused) {
  return suites::UseAllBut(call, AllFlags(), unused);
}

suites::FlagUse FlagsUsed(const std::vector<std::string>&) {
  if (!absl::GetFlag(FLAGS_session).empty()) {
    suites::FlagUse use = {"with --session, which prints JSON",
                           {"session", "history"}};
    if (absl::GetFlag(FLAGS_format) == OutputFormat::kJson) {
      use.flags.push_back("format");
    }
    return use;
  }
  if (absl::GetFlag(FLAGS_energy)) {
    return AllBut(
        "with --energy",
        {"batch", "noise", "compile_time_objective", "transfer",
         "transfer_trials", "shuffle_transfer", "prior", "top_k", "history"});
  }
  if (absl::GetFlag(FLAGS_time_within) != 0 ||
      absl::GetFlag(FLAGS_joules_noise) != 0 ||
      absl::GetFlag(FLAGS_recorded_noise) != 0 || absl::GetFlag(FLAGS_optima)) {
    return AllBut("without --energy",
                  {"time_within", "joules_noise", "recorded_noise", "optima"});
  }
  if (absl::GetFlag(FLAGS_transfer).empty() &&
      (absl::GetFlag(FLAGS_transfer_trials) != 0 ||
       absl::GetFlag(FLAGS_shuffle_transfer))) {
    return AllBut("without --transfer",
                  {"transfer_trials", "shuffle_transfer"});
  }
  if (absl::GetFlag(FLAGS_prior).empty() && absl::GetFlag(FLAGS_top_k) != 0) {
    return AllBut("without --prior", {"top_k"});
  }
  return AllBut("without --session", {"history"});
}

}  // namespace

suites::Command ReplayCommand() {
  suites::Command command;
  command.name = "replay";
  command.arguments = "[FILE...]";
  command.summary = "Judges search strategies on recorded spaces.";
  command.details = HelpText("replay");
  command.flags = AllFlags();
  command.use = FlagsUsed;
  command.max_arguments = -1;
  command.run =
      [](const std::vector<std::string>& files) -> absl::StatusOr<int> {
    if (const std::string id = absl::GetFlag(FLAGS_session); !id.empty()) {
      return PrintSession(id);
    }
    tuning::ReplayCommand options;
    for (const std::string& path : absl::GetFlag(FLAGS_spaces)) {
      options.spaces.push_back(UserPath(path));
    }
    for (const std::string& path : files) {
      options.spaces.push_back(UserPath(path));
    }
    options.strategies = absl::GetFlag(FLAGS_strategies);
    options.budgets.clear();
    for (const std::string& text : absl::GetFlag(FLAGS_budgets)) {
      int budget;
      if (!absl::SimpleAtoi(text, &budget) || budget < 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("flag --budgets: \"", text,
                         "\", expected positive integers such as 50,100"));
      }
      options.budgets.push_back(budget);
    }
    for (const auto& [flag, value, least] :
         {std::make_tuple("seeds", absl::GetFlag(FLAGS_seeds), 1),
          std::make_tuple("batch", absl::GetFlag(FLAGS_batch), 1),
          std::make_tuple("jobs", absl::GetFlag(FLAGS_jobs), 0),
          std::make_tuple("top_k", absl::GetFlag(FLAGS_top_k), 0)}) {
      OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
          value >= least, flag, value, absl::StrCat("at least ", least)));
    }
    options.seeds = absl::GetFlag(FLAGS_seeds);
    options.first_seed = absl::GetFlag(FLAGS_first_seed);
    options.batch = absl::GetFlag(FLAGS_batch);
    options.jobs = absl::GetFlag(FLAGS_jobs);
    options.format = FormatName();
    options.noise = absl::GetFlag(FLAGS_noise);
    options.compile_time_objective =
        absl::GetFlag(FLAGS_compile_time_objective);
    for (const std::string& path : absl::GetFlag(FLAGS_transfer)) {
      options.transfer.push_back(UserPath(path));
    }
    options.transfer_trials = absl::GetFlag(FLAGS_transfer_trials);
    options.shuffle_transfer = absl::GetFlag(FLAGS_shuffle_transfer);
    options.prior = UserPath(absl::GetFlag(FLAGS_prior));
    options.top_k = absl::GetFlag(FLAGS_top_k);
    if (absl::GetFlag(FLAGS_energy)) return ReplayEnergy(options);
    OPTRAIL_ASSIGN_OR_RETURN(const std::vector<tuning::ReplayRow> rows,
                             tuning::RunReplay(options));
    OPTRAIL_ASSIGN_OR_RETURN(const std::string text,
                             tuning::FormatReplay(options, rows));
    std::cout << text;
    return 0;
  };
  return command;
}

}  // namespace optrail::cli
