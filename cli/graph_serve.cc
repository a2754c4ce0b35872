// `optrail graph serve` and `optrail graph tune`: a model under a load.

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/process/cpus.h"
#include "base/status_macros.h"
#include "cli/flags.h"
#include "cli/graph_parts.h"
#include "cli/shared_machine.h"
#include "graph/onnx/import.h"
#include "suites/command/command_flags.h"
#include "suites/graph/serve_graph.h"
#include "suites/graph/tune_graph.h"
#include "tracker/command/command_support.h"
#include "tracker/history/history.h"
#include "tuning/session/parse_objective.h"

ABSL_FLAG(std::string, load, "",
          "Requests per second that arrive, such as 20000 or 20000/s; without "
          "it the highest load that keeps --p99_limit is found.");
ABSL_FLAG(absl::Duration, duration, absl::ZeroDuration(),
          "How long requests arrive; 0: 5s. In a search for the highest load "
          "the least for each that is tried; 0: 500ms, at least 20 times the "
          "limit of latency.");
ABSL_FLAG(absl::Duration, max_wait, absl::Milliseconds(1),
          "A batch that is not full waits so long for more requests.");
ABSL_FLAG(absl::Duration, p99_limit, absl::ZeroDuration(),
          "The 99th percentile of latency, from a request's arrival to its "
          "answer, has to be within this; 0: no limit.");
ABSL_FLAG(bool, untuned, false,
          "Every operator has its default config, whatever is stored.");

ABSL_DECLARE_FLAG(std::string, dims);
ABSL_DECLARE_FLAG(int32_t, workers);

namespace optrail::cli {
namespace {

// "20000" or "20000/s".
absl::StatusOr<double> Load() {
  const std::string text = absl::GetFlag(FLAGS_load);
  if (text.empty()) return 0;
  double load = 0;
  const bool is_number = absl::SimpleAtod(absl::StripSuffix(text, "/s"), &load);
  OPTRAIL_RETURN_IF_ERROR(
      tracker::CheckFlag(is_number && load > 0 && load <= 1e8, "load", text,
                         "requests per second, such as 20000/s, up to 1e8"));
  return load;
}

absl::StatusOr<suites::OpenLoopOptions> LoadOptions() {
  suites::OpenLoopOptions options;
  OPTRAIL_ASSIGN_OR_RETURN(options.load, Load());
  options.duration = absl::GetFlag(FLAGS_duration);
  if (options.duration == absl::ZeroDuration()) {
    options.duration =
        options.load > 0 ? absl::Seconds(5) : absl::Milliseconds(500);
  }
  options.seed = absl::GetFlag(FLAGS_seed);
  OPTRAIL_ASSIGN_OR_RETURN(options.batch, GraphBatch());
  options.max_wait = absl::GetFlag(FLAGS_max_wait);
  options.workers = absl::GetFlag(FLAGS_workers);
  for (const absl::Status& status :
       {tracker::CheckFlag(options.duration >= absl::Milliseconds(100) &&
                               options.duration <= absl::Hours(1),
                           "duration", absl::FormatDuration(options.duration),
                           "a duration of 100ms to 1h"),
        tracker::CheckFlag(options.max_wait >= absl::ZeroDuration() &&
                               options.max_wait <= absl::Minutes(1),
                           "max_wait", absl::FormatDuration(options.max_wait),
                           "a duration of 0 to 1m"),
        tracker::CheckFlag(options.workers >= 1 && options.workers <= 256,
                           "workers", options.workers, "1 to 256"),
        tracker::CheckFlag(
            options.load == 0 ||
                options.load * absl::ToDoubleSeconds(options.duration) >= 1,
            "load", options.load, "at least one request within --duration"),
        tracker::CheckFlag(
            options.load * absl::ToDoubleSeconds(options.duration) <=
                suites::kMostRequests,
            "load", options.load,
            absl::StrCat("at most ", suites::kMostRequests,
                         " requests within --duration"))}) {
    OPTRAIL_RETURN_IF_ERROR(status);
  }
  return options;
}

// The limit of "requests_per_second,latency_p99<=5ms", the one objective there
// is: the notation is that of other commands, and a duration stands for ns.
absl::StatusOr<absl::Duration> LatencyLimit() {
  const std::string text = absl::GetFlag(FLAGS_objective);
  const auto wrong = absl::InvalidArgumentError(
      absl::StrCat("flag --objective=", text,
                   ": expected requests_per_second,latency_p99<=LIMIT, such as "
                   "requests_per_second,latency_p99<=5ms"));
  const std::vector<std::string> parts = absl::StrSplit(text, ',');
  if (parts.size() != 2) return wrong;
  std::string limited = parts[1];
  const size_t at = limited.find("<=");
  absl::Duration duration;
  if (at != std::string::npos &&
      absl::ParseDuration(limited.substr(at + 2), &duration)) {
    limited = absl::StrCat(limited.substr(0, at + 2),
                           absl::ToDoubleNanoseconds(duration));
  }
  const auto requests =
      tuning::ParseObjective(parts[0], proto::HIGHER_IS_BETTER);
  const auto latency = tuning::ParseObjective(limited, proto::LOWER_IS_BETTER);
  if (!requests.ok() || requests->metric() != "requests_per_second" ||
      requests->has_limit() || !latency.ok() ||
      latency->metric() != "latency_p99" || !latency->has_limit()) {
    return wrong;
  }
  const absl::Duration limit = absl::Nanoseconds(latency->limit());
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      limit >= absl::Microseconds(1) && limit <= absl::Minutes(1), "objective",
      text, "a limit of 1us to 1m"));
  return limit;
}

// How much the stages try, where flags say so.
absl::Status SetEffort(suites::GraphTuneCommand& command) {
  const int64_t total_trials = absl::GetFlag(FLAGS_total_trials);
  const int64_t trials = absl::GetFlag(FLAGS_trials);
  const absl::Duration proof_time = absl::GetFlag(FLAGS_proof_time);
  for (const absl::Status& status :
       {tracker::CheckFlag(total_trials >= 0 && total_trials <= 100'000'000,
                           "total_trials", total_trials,
                           "1 to 100000000, or 0 for 100"),
        tracker::CheckFlag(trials >= 0 && trials <= 1'000'000, "trials", trials,
                           "1 to 1000000, or 0 for 16"),
        tracker::CheckFlag(
            proof_time >= absl::ZeroDuration() && proof_time <= absl::Hours(24),
            "proof_time", absl::FormatDuration(proof_time),
            "a duration of 0 to 24h, 0 for 30s")}) {
    OPTRAIL_RETURN_IF_ERROR(status);
  }
  if (total_trials > 0) command.total_trials = total_trials;
  if (trials > 0) command.trials = trials;
  if (proof_time > absl::ZeroDuration()) command.proof_time = proof_time;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> RunGraphServe(const std::vector<std::string>& paths) {
  suites::GraphServeCommand command;
  OPTRAIL_ASSIGN_OR_RETURN(command.model, HowToRunGraph(paths[0]));
  command.model.fusion_store = GraphFusionFolder(command.model.store);
  OPTRAIL_ASSIGN_OR_RETURN(command.load, LoadOptions());
  command.p99_limit = absl::GetFlag(FLAGS_p99_limit);
  OPTRAIL_RETURN_IF_ERROR(
      tracker::CheckFlag(command.p99_limit >= absl::ZeroDuration() &&
                             command.p99_limit <= absl::Minutes(1),
                         "p99_limit", absl::FormatDuration(command.p99_limit),
                         "a duration of 0 to 1m"));
  if (command.load.load == 0 && command.p99_limit == absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        "--load is missing; next: --load=20000/s for a load, or "
        "--p99_limit=5ms for the highest that keeps it");
  }
  command.untuned = absl::GetFlag(FLAGS_untuned);
  command.model.format = absl::GetFlag(FLAGS_format);
  command.model.record = absl::GetFlag(FLAGS_record);
  command.model.history = HistoryFolder();
  // `graph tune` reads JSON, many times, and says so itself.
  if (tracker::IsForPeople(command.model.format)) AdviseServingIfShared();
  return CodeOf(suites::ServeGraph(command, std::cout));
}

absl::StatusOr<int> RunGraphTune(const std::vector<std::string>& paths) {
  suites::GraphTuneCommand command;
  command.path = UserPath(paths[0]);
  OPTRAIL_ASSIGN_OR_RETURN(command.p99_limit, LatencyLimit());
  OPTRAIL_ASSIGN_OR_RETURN(const suites::OpenLoopOptions load, LoadOptions());
  command.duration = load.duration;
  command.max_wait = load.max_wait;
  command.batch = std::max<int64_t>(1, load.batch);
  command.workers = load.workers;
  OPTRAIL_ASSIGN_OR_RETURN(command.threads, GraphThreads());
  command.cores = static_cast<int>(UsableCpus().size());
  if (command.threads == 0) {
    command.threads = std::max(1, command.cores / command.workers);
  }
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      command.threads * command.workers <= command.cores, "threads",
      command.threads,
      absl::StrCat(
          "0 for all cores, or a number that times --workers=", command.workers,
          " is at most ", command.cores, ", the cores that are usable")));
  command.seed = absl::GetFlag(FLAGS_seed);
  command.imports = {absl::StrCat("--seed=", command.seed)};
  if (const std::string dims = absl::GetFlag(FLAGS_dims); !dims.empty()) {
    command.imports.push_back(absl::StrCat("--dims=", dims));
  }
  command.places = {absl::StrCat("--store=", StoreFolder()),
                    absl::StrCat("--history=", HistoryFolder())};
  OPTRAIL_RETURN_IF_ERROR(SetEffort(command));
  OPTRAIL_ASSIGN_OR_RETURN(const suites::RunContext context,
                           suites::RunContextFromFlags());
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckHistoryIsWritable(context.history));
  // Each stage imports the model anew: what is wrong with it is said before.
  OPTRAIL_ASSIGN_OR_RETURN(const graph::ImportOptions import, GraphImport());
  OPTRAIL_ASSIGN_OR_RETURN(const graph::Imported imported,
                           graph::ImportOnnx(command.path, import));
  OPTRAIL_RETURN_IF_ERROR(graph::CheckCovered(imported, command.path));
  command.folder = JoinPath(context.state, "graph_tune");
  command.format = absl::GetFlag(FLAGS_format);
  AdviseServingIfShared();
  return CodeOf(suites::TuneGraph(command, suites::OwnTools(command, context),
                                  std::cout, std::cerr));
}

}  // namespace optrail::cli
