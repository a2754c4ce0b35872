// `optrail graph`: whole models as graphs of operators.

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/cpus.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "cli/shared_machine.h"
#include "graph/command/export_command.h"
#include "graph/command/graph_command.h"
#include "suites/command/command_flags.h"
#include "suites/graph/feed_graph.h"
#include "suites/graph/graph_workload.h"
#include "suites/graph/recompute_graph.h"
#include "suites/graph/run_graph.h"
#include "suites/graph/serve_graph.h"
#include "suites/graph/tune_graph.h"
#include "suites/worker/opened_task.h"
#include "tracker/command/command_support.h"
#include "tracker/history/history.h"
#include "tuning/session/parse_objective.h"

ABSL_FLAG(optrail::graph::GraphView, view, optrail::graph::GraphView::kSummary,
          "What of a graph is shown: summary, text, dot (Graphviz) or json.");
ABSL_FLAG(std::string, dims, "",
          "Sizes of a model's symbolic dimensions: batch=8,sequence=128.");
ABSL_FLAG(std::string, data, "",
          "A .npz file with a model's inputs by name and its expected output.");
ABSL_FLAG(double, tolerance, 1e-4,
          "How far a result may be from the expected one, as a part of the "
          "largest value; 300 times as far with --type=bf16.");
ABSL_FLAG(std::string, type, "f32",
          "Type of a model's tensors in memory: f32, or bf16, with which "
          "products multiply pairs of 16 bits and elementwise operators "
          "compute in f32.");

ABSL_FLAG(
    std::string, against, "",
    "What a graph is timed against, interleaved: unfused (the graph without "
    "fusion), untuned (with default configs), or the command of a peer "
    "(docs/method/graphs.md).");
ABSL_FLAG(
    optrail::suites::FuseMode, fuse, optrail::suites::FuseMode::kRules,
    "Where operators are fused: rules (wherever a rule applies), none, or "
    "measured (where it was not slower here; what is not known is "
    "measured and kept beside --store, in the folder fusion).");
ABSL_FLAG(
    double, check_flop, 2e10,
    "A graph whose reference would take more FLOP is run without comparing "
    "it with the reference, which would take long.");

ABSL_FLAG(std::string, input, "",
          "Samples that a model is fed with: a file with a line for each, or a "
          "folder with a .npz file for each (docs/method/graphs.md).");
ABSL_FLAG(int32_t, workers, 1,
          "feed: threads that read and parse input; serve: copies of the model "
          "that answer requests, each with --threads.");
ABSL_FLAG(int64_t, prefetch, 2, "Batches of input that are loaded ahead.");
ABSL_FLAG(int64_t, chunk, 1, "Samples of input that are read at a time.");
ABSL_FLAG(optrail::Percentage, memory, {.5},
          "The part of what a training step keeps from its forward pass that "
          "may be left by recomputation.");
ABSL_FLAG(absl::Duration, read_latency, absl::ZeroDuration(),
          "Every read of input takes so much longer: what storage that answers "
          "as late would cost.");

ABSL_FLAG(int32_t, sent_ahead, 1,
          "Batches that are copied to a GPU while others are computed there; "
          "0: each is copied when the one before it is done.");
ABSL_FLAG(bool, pinned, true,
          "Batches are sent to a GPU from page-locked memory.");

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

ABSL_DECLARE_FLAG(std::string, device);
ABSL_DECLARE_FLAG(int32_t, batch);

namespace optrail::cli {
namespace {

absl::StatusOr<graph::ImportOptions> Import() {
  graph::ImportOptions options;
  options.seed = absl::GetFlag(FLAGS_seed);
  const auto dims = graph::ParseDims(absl::GetFlag(FLAGS_dims));
  if (!dims.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--dims: ", dims.status().message()));
  }
  options.dims = *dims;
  return options;
}

absl::StatusOr<int> RunShow(const std::vector<std::string>& paths) {
  graph::GraphShowCommand command;
  command.path = UserPath(paths[0]);
  OPTRAIL_ASSIGN_OR_RETURN(command.import, Import());
  command.view = absl::GetFlag(FLAGS_view);
  command.format = absl::GetFlag(FLAGS_format);
  return CodeOf(graph::RunGraphShow(command, std::cout));
}

absl::StatusOr<double> Tolerance() {
  const double tolerance = absl::GetFlag(FLAGS_tolerance);
  OPTRAIL_RETURN_IF_ERROR(
      tracker::CheckFlag(tolerance >= 0 && tolerance <= 1, "tolerance",
                         tolerance, "0 to 1, a part of the largest value"));
  return tolerance;
}

absl::StatusOr<int> RunCheck(const std::vector<std::string>& paths) {
  graph::GraphCheckCommand command;
  command.path = UserPath(paths[0]);
  const std::string data = absl::GetFlag(FLAGS_data);
  if (data.empty()) {
    return absl::InvalidArgumentError(
        "--data is missing; next: --data=FILE.npz with inputs and output");
  }
  command.data = UserPath(data);
  OPTRAIL_ASSIGN_OR_RETURN(command.import, Import());
  OPTRAIL_ASSIGN_OR_RETURN(command.tolerance, Tolerance());
  command.format = absl::GetFlag(FLAGS_format);
  return CodeOf(graph::RunGraphCheck(command, std::cout));
}

// The threads of a model.
absl::StatusOr<int> Threads() {
  const std::vector<std::string> texts = absl::GetFlag(FLAGS_threads);
  int threads = 1;
  if (texts.size() > 1 ||
      (texts.size() == 1 && !absl::SimpleAtoi(texts[0], &threads))) {
    return absl::InvalidArgumentError("--threads: expected one number");
  }
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(threads >= 0 && threads <= 1024,
                                             "threads", threads,
                                             "1 to 1024, or 0 for all cores"));
  return threads;
}

// Returns the folder of compiled kernels, beside the store.
std::string CompiledFolder() {
  return JoinPath(std::filesystem::path(StoreFolder()).parent_path().string(),
                  JoinPath("state", suites::kCompiledFolder));
}

// Returns the model and how it is run.
absl::StatusOr<suites::GraphRunCommand> HowToRun(const std::string& path) {
  suites::GraphRunCommand command;
  command.path = UserPath(path);
  OPTRAIL_ASSIGN_OR_RETURN(command.import, Import());
  OPTRAIL_ASSIGN_OR_RETURN(command.threads, Threads());
  command.device = absl::GetFlag(FLAGS_device);
  const std::vector<std::string> threads = absl::GetFlag(FLAGS_threads);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      command.device == "cpu" || threads.empty(), "threads",
      absl::StrJoin(threads, ","),
      absl::StrCat("--device=cpu with it: it has no effect on --device=",
                   command.device)));
  command.type = absl::GetFlag(FLAGS_type);
  command.fuse = absl::GetFlag(FLAGS_fuse);
  command.store = StoreFolder();
  command.compile_cache = CompiledFolder();
  return command;
}

absl::StatusOr<int> RunFeed(const std::vector<std::string>& paths) {
  suites::GraphFeedCommand command;
  OPTRAIL_ASSIGN_OR_RETURN(command.model, HowToRun(paths[0]));
  command.input = UserPath(absl::GetFlag(FLAGS_input));
  if (command.input.empty()) {
    return absl::InvalidArgumentError(
        "--input is missing; next: --input=SAMPLES, a file with a line for "
        "each sample or a folder with a .npz file for each");
  }
  command.loader.workers = absl::GetFlag(FLAGS_workers);
  command.loader.prefetch = absl::GetFlag(FLAGS_prefetch);
  command.loader.chunk = absl::GetFlag(FLAGS_chunk);
  command.read_latency = absl::GetFlag(FLAGS_read_latency);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      command.read_latency >= absl::ZeroDuration() &&
          command.read_latency <= absl::Seconds(10),
      "read_latency", absl::FormatDuration(command.read_latency),
      "a duration of 0 to 10s"));
  command.feeder.sent_ahead = absl::GetFlag(FLAGS_sent_ahead);
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      command.feeder.sent_ahead >= 0 && command.feeder.sent_ahead <= 64,
      "sent_ahead", command.feeder.sent_ahead, "0 to 64"));
  command.feeder.pinned = absl::GetFlag(FLAGS_pinned);
  const graph::FeederOptions unset;
  const bool copies = command.model.device != "cpu";
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      copies || (command.feeder.sent_ahead == unset.sent_ahead &&
                 command.feeder.pinned == unset.pinned),
      "device", command.model.device,
      "--device=cuda with --sent_ahead and --pinned: a CPU reads a batch where "
      "it was written"));
  command.model.record = absl::GetFlag(FLAGS_record);
  command.model.history = HistoryFolder();
  command.model.format = absl::GetFlag(FLAGS_format);
  return CodeOf(suites::FeedGraph(command, std::cout));
}

absl::StatusOr<int> RunRecompute(const std::vector<std::string>& paths) {
  suites::GraphRecomputeCommand command;
  command.path = UserPath(paths[0]);
  OPTRAIL_ASSIGN_OR_RETURN(command.import, Import());
  OPTRAIL_ASSIGN_OR_RETURN(command.threads, Threads());
  command.memory = absl::GetFlag(FLAGS_memory).fraction;
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      command.memory > 0 && command.memory <= 1, "memory",
      FormatPercent(command.memory), "more than 0%, up to 100%"));
  OPTRAIL_ASSIGN_OR_RETURN(command.tolerance, Tolerance());
  command.store = StoreFolder();
  command.compile_cache = CompiledFolder();
  command.format = absl::GetFlag(FLAGS_format);
  return CodeOf(suites::RecomputeGraph(command, std::cout));
}

// Returns the folder of decisions of measured fusion, beside the store.
std::string FusionFolder(const std::string& store) {
  return JoinPath(std::filesystem::path(store).parent_path().string(),
                  "fusion");
}

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

absl::StatusOr<int64_t> Batch() {
  const int64_t batch = absl::GetFlag(FLAGS_batch);
  OPTRAIL_RETURN_IF_ERROR(
      tracker::CheckFlag(batch >= 0 && batch <= 1'000'000, "batch", batch,
                         "1 to 1000000, or 0 for the model's"));
  return batch;
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
  OPTRAIL_ASSIGN_OR_RETURN(options.batch, Batch());
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
            options.load * absl::ToDoubleSeconds(options.duration) <=
                suites::kMostRequests,
            "load", options.load,
            absl::StrCat("at most ", suites::kMostRequests,
                         " requests within --duration"))}) {
    OPTRAIL_RETURN_IF_ERROR(status);
  }
  return options;
}

absl::StatusOr<int> RunServe(const std::vector<std::string>& paths) {
  suites::GraphServeCommand command;
  OPTRAIL_ASSIGN_OR_RETURN(command.model, HowToRun(paths[0]));
  command.model.fusion_store = FusionFolder(command.model.store);
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

absl::StatusOr<int> RunTune(const std::vector<std::string>& paths) {
  suites::GraphTuneCommand command;
  command.path = UserPath(paths[0]);
  OPTRAIL_ASSIGN_OR_RETURN(command.p99_limit, LatencyLimit());
  OPTRAIL_RETURN_IF_ERROR(Import().status());
  OPTRAIL_ASSIGN_OR_RETURN(const suites::OpenLoopOptions load, LoadOptions());
  command.duration = load.duration;
  command.max_wait = load.max_wait;
  command.batch = std::max<int64_t>(1, load.batch);
  command.workers = load.workers;
  OPTRAIL_ASSIGN_OR_RETURN(command.threads, Threads());
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
  command.folder = JoinPath(context.state, "graph_tune");
  command.format = absl::GetFlag(FLAGS_format);
  AdviseServingIfShared();
  return CodeOf(suites::TuneGraph(command, suites::OwnTools(command, context),
                                  std::cout, std::cerr));
}

absl::StatusOr<int> RunRun(const std::vector<std::string>& paths) {
  OPTRAIL_ASSIGN_OR_RETURN(suites::GraphRunCommand command, HowToRun(paths[0]));
  command.data = UserPath(absl::GetFlag(FLAGS_data));
  command.most_checked_flop = absl::GetFlag(FLAGS_check_flop);
  command.fusion_store = FusionFolder(command.store);
  command.against = absl::GetFlag(FLAGS_against);
  OPTRAIL_ASSIGN_OR_RETURN(command.tolerance, Tolerance());
  command.format = absl::GetFlag(FLAGS_format);
  command.page = UserPath(absl::GetFlag(FLAGS_out));
  command.record = absl::GetFlag(FLAGS_record);
  command.history = HistoryFolder();
  return CodeOf(suites::RunGraph(command, std::cout));
}

absl::StatusOr<int> RunWorkload(const std::vector<std::string>& paths) {
  const std::string out = UserPath(absl::GetFlag(FLAGS_out));
  if (out.empty()) {
    return absl::InvalidArgumentError(
        "--out is missing; next: --out=MODEL.workload.textproto");
  }
  OPTRAIL_ASSIGN_OR_RETURN(suites::GraphRunCommand command, HowToRun(paths[0]));
  OPTRAIL_ASSIGN_OR_RETURN(command.import.batch, Batch());
  OPTRAIL_RETURN_IF_ERROR(suites::WriteGraphWorkload(command, out, std::cout));
  return ToInt(ExitCode::kOk);
}

absl::StatusOr<int> RunExport(const std::vector<std::string>& paths) {
  graph::GraphExportCommand command;
  command.path = UserPath(paths[0]);
  const std::string out = absl::GetFlag(FLAGS_out);
  if (out.empty()) {
    return absl::InvalidArgumentError("--out is missing; next: --out=FOLDER");
  }
  command.folder = UserPath(out);
  OPTRAIL_ASSIGN_OR_RETURN(command.import, Import());
  OPTRAIL_RETURN_IF_ERROR(graph::RunGraphExport(command, std::cout));
  return ToInt(ExitCode::kOk);
}

}  // namespace

suites::Command GraphCommand() {
  suites::Command command;
  command.name = "graph";
  command.arguments =
      "show | check | run | feed | serve | tune | recompute | workload | "
      "export "
      "MODEL.onnx";
  command.summary = "Imports a model; shows, checks, runs, serves, tunes it.";
  command.details = HelpText("graph");
  command.defaults = {{"batch", "0"}, {"objective", ""}};
  command.meanings = {
      {"batch",
       "The most requests, a sample each, of one call: replaces the first "
       "dimension of the model's inputs; 0: what that is."},
      {"objective",
       "What a model is tuned for: requests_per_second,latency_p99<=5ms, the "
       "highest load whose 99th percentile of latency is within the limit."},
      {"total_trials",
       "Configs of operators to try in each stage that tunes them; 0: 100."},
      {"trials", "Batches, workers and threads to try; 0: 16."},
      {"proof_time",
       "Longest comparison of a stage with the one before it; 0: 30s."},
      {"out", "Folder or file to write to; with run, a page about the run."},
      {"record", "Adds the run to the history."},
      {"seed",
       "Seed of inputs and arrivals, and of weights that the model does not "
       "have."},
      {"threads", "Number of threads of a CPU; 0: all cores."},
      {"store", "Folder of tuned configs; by default .optrail/store."}};
  const auto part = [](std::string name, std::string summary,
                       std::vector<std::string> flags, decltype(&RunShow) run) {
    return Part(std::move(name), "MODEL.onnx", std::move(summary),
                Together({{"dims", "seed"}, std::move(flags)}), 1, 1, run);
  };
  command.parts = {
      part("show", "Prints what the model becomes.", {"view", "format"},
           RunShow),
      part("check", "Computes it in double precision and compares.",
           {"data", "tolerance", "format"}, RunCheck),
      part(
          "run", "Runs it on a CPU or a GPU, checks and times it.",
          {"data", "device", "type", "threads", "fuse", "against", "check_flop",
           "tolerance", "store", "format", "out", "record", "history"},
          RunRun),
      part("feed", "Runs it while a loader brings its input; times both.",
           {"input", "workers", "prefetch", "chunk", "read_latency",
            "sent_ahead", "pinned", "device", "type", "threads", "store",
            "format", "record", "history"},
           RunFeed),
      part("serve", "Answers requests under a load; rate and latencies.",
           {"load", "duration", "batch", "max_wait", "workers", "threads",
            "p99_limit", "untuned", "fuse", "device", "type", "store", "format",
            "record", "history"},
           RunServe),
      part("tune", "Tunes how it serves in layers; what each brought.",
           {"objective", "batch", "workers", "threads", "duration", "max_wait",
            "total_trials", "trials", "proof_time", "store", "format",
            "history"},
           RunTune),
      part("recompute", "Keeps less of a training step; front and times.",
           {"memory", "threads", "tolerance", "store", "format"}, RunRecompute),
      part("workload", "Writes its operators as a workload to tune.",
           {"out", "batch", "fuse", "device", "type", "threads", "store"},
           RunWorkload),
      part("export", "Writes it with its weights and inputs, for a peer.",
           {"out"}, RunExport)};
  return command;
}

}  // namespace optrail::cli
