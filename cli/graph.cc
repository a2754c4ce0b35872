// `optrail graph`: whole models as graphs of operators.

#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/file/file.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "cli/embedded_texts.h"
#include "cli/flags.h"
#include "cli/graph_parts.h"
#include "graph/command/export_command.h"
#include "graph/command/graph_command.h"
#include "suites/command/command_flags.h"
#include "suites/graph/feed_graph.h"
#include "suites/graph/graph_workload.h"
#include "suites/graph/recompute_graph.h"
#include "suites/graph/run_graph.h"
#include "suites/worker/opened_task.h"
#include "tracker/command/command_support.h"

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

ABSL_DECLARE_FLAG(std::string, device);
ABSL_DECLARE_FLAG(int32_t, batch);

namespace optrail::cli {

absl::StatusOr<graph::ImportOptions> GraphImport() {
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

absl::StatusOr<int> GraphThreads() {
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

std::string GraphCompiledFolder() {
  return JoinPath(std::filesystem::path(StoreFolder()).parent_path().string(),
                  JoinPath("state", suites::kCompiledFolder));
}

std::string GraphFusionFolder(const std::string& store) {
  return JoinPath(std::filesystem::path(store).parent_path().string(),
                  "fusion");
}

absl::StatusOr<int64_t> GraphBatch() {
  const int64_t batch = absl::GetFlag(FLAGS_batch);
  OPTRAIL_RETURN_IF_ERROR(
      tracker::CheckFlag(batch >= 0 && batch <= 1'000'000, "batch", batch,
                         "1 to 1000000, or 0 for the model's"));
  return batch;
}

absl::StatusOr<suites::GraphRunCommand> HowToRunGraph(const std::string& path) {
  suites::GraphRunCommand command;
  command.path = UserPath(path);
  OPTRAIL_ASSIGN_OR_RETURN(command.import, GraphImport());
  OPTRAIL_ASSIGN_OR_RETURN(command.threads, GraphThreads());
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
  command.compile_cache = GraphCompiledFolder();
  return command;
}

namespace {

absl::StatusOr<int> RunShow(const std::vector<std::string>& paths) {
  graph::GraphShowCommand command;
  command.path = UserPath(paths[0]);
  OPTRAIL_ASSIGN_OR_RETURN(command.import, GraphImport());
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
  OPTRAIL_ASSIGN_OR_RETURN(command.import, GraphImport());
  OPTRAIL_ASSIGN_OR_RETURN(command.tolerance, Tolerance());
  command.format = absl::GetFlag(FLAGS_format);
  return CodeOf(graph::RunGraphCheck(command, std::cout));
}

absl::StatusOr<int> RunFeed(const std::vector<std::string>& paths) {
  suites::GraphFeedCommand command;
  OPTRAIL_ASSIGN_OR_RETURN(command.model, HowToRunGraph(paths[0]));
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
  OPTRAIL_ASSIGN_OR_RETURN(command.import, GraphImport());
  OPTRAIL_ASSIGN_OR_RETURN(command.threads, GraphThreads());
  command.memory = absl::GetFlag(FLAGS_memory).fraction;
  OPTRAIL_RETURN_IF_ERROR(tracker::CheckFlag(
      command.memory > 0 && command.memory <= 1, "memory",
      FormatPercent(command.memory), "more than 0%, up to 100%"));
  OPTRAIL_ASSIGN_OR_RETURN(command.tolerance, Tolerance());
  command.store = StoreFolder();
  command.compile_cache = GraphCompiledFolder();
  command.format = absl::GetFlag(FLAGS_format);
  return CodeOf(suites::RecomputeGraph(command, std::cout));
}

absl::StatusOr<int> RunRun(const std::vector<std::string>& paths) {
  OPTRAIL_ASSIGN_OR_RETURN(suites::GraphRunCommand command,
                           HowToRunGraph(paths[0]));
  command.data = UserPath(absl::GetFlag(FLAGS_data));
  command.most_checked_flop = absl::GetFlag(FLAGS_check_flop);
  command.fusion_store = GraphFusionFolder(command.store);
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
  OPTRAIL_ASSIGN_OR_RETURN(suites::GraphRunCommand command,
                           HowToRunGraph(paths[0]));
  OPTRAIL_ASSIGN_OR_RETURN(command.import.batch, GraphBatch());
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
  OPTRAIL_ASSIGN_OR_RETURN(command.import, GraphImport());
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
           RunGraphServe),
      part("tune", "Tunes how it serves in layers; what each brought.",
           {"objective", "batch", "workers", "threads", "duration", "max_wait",
            "total_trials", "trials", "proof_time", "store", "format",
            "history"},
           RunGraphTune),
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
