// Our kernels on shapes that nobody chose: shapes of every operator are drawn
// from documented distributions (docs/method/any_shape.md), and default and
// tuned configs are measured beside vendors' libraries and another program,
// usually PyTorch, interleaved.
//
//   bazel run //suites:any_shape -- --device=cpu --seed=7 --op=softmax
//       --shapes=10 --tune_trials=40 --json=softmax.json
//   bazel run //suites:any_shape -- --device=cuda --seed=7 --tune_trials=72
//       --peer="python3 ops/evaluation/torch_peers.py --serve"
//       --sides=torch,compiled
//
// Tuning and its records stay in --state, apart from the store and the history
// of the workspace, and so does the list of shapes, as a workload that every
// other command takes. A ratio is the other's time over ours. Exit code 1: one
// of our default configs failed, or gave a wrong result. 3: some default config
// was disturbed whenever it was measured.

#include <algorithm>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/file/file.h"
#include "base/process/git.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/text/table.h"
#include "nlohmann/json.hpp"
#include "ops/core/device_type.h"
#include "ops/core/library_backend.h"
#include "ops/core/registry.h"
#include "re2/re2.h"
#include "suites/evaluation/evaluation.h"
#include "suites/evaluation/line_peer.h"
#include "suites/evaluation/random_shapes.h"
#include "suites/evaluation/shape_results.h"
#include "suites/evaluation/side_by_side.h"
#include "suites/tune/task_store.h"
#include "suites/tune/tune_driver.h"
#include "suites/worker/run_context.h"
#include "suites/workload/tasks.h"
#include "tuning/proto/canonical.h"
#include "tuning/space/expression.h"

ABSL_FLAG(std::string, device, "cpu", "Kind of device: cpu or cuda.");
ABSL_FLAG(uint64_t, seed, 1, "Seed of the shapes.");
ABSL_FLAG(std::string, op, "",
          "Operators, a regular expression that matches the whole name; all.");
ABSL_FLAG(int, shapes, 50, "Shapes of each operator.");
ABSL_FLAG(int, tune_trials, 0,
          "Trials of tuning each shape; 0: default configs alone.");
ABSL_FLAG(int, random_configs, 0,
          "Random valid configs measured beside the default, for --json: half "
          "of them are the best of eight times as many by the prior.");
ABSL_FLAG(std::string, variants, "",
          "The default with other values of some knobs, measured beside it for "
          "--json where that is valid: kc=32,n_tiles=64;kc=64");
ABSL_FLAG(std::string, dtype, "", "f32 on cpu, bf16 on cuda.");
ABSL_FLAG(double, max_mb, 0,
          "Largest shape, all operands; 0: 64 on cpu, 1024 on cuda.");
ABSL_FLAG(double, max_mflop, 0,
          "Most operations of a call; 0: 600 on cpu, 2e6 on cuda.");
ABSL_FLAG(double, min_mflop, 0, "Fewest operations of a call.");
ABSL_FLAG(int64_t, multiple_of, 1,
          "Extents and columns are multiples of it; rows and batches are not.");
ABSL_FLAG(std::string, where, "",
          "Condition on the dimensions of a shape, as in a space file: "
          "\"dim.k <= 32 && dim.n > 512\". Other shapes are drawn again.");
ABSL_FLAG(double, max_reference_mflop, 600,
          "Most operations where the whole reference must be computed.");
ABSL_FLAG(std::string, cache, "", "hot or cold; hot on cpu, cold on cuda.");
ABSL_FLAG(std::string, launch, "", "stream or graph; graph on cuda.");
ABSL_FLAG(int, threads, 1, "Threads of a CPU; 0: all.");
ABSL_FLAG(bool, libraries, true, "Measure vendors' libraries beside ours.");
ABSL_FLAG(std::string, peer, "", "Command that answers for --sides.");
ABSL_FLAG(std::vector<std::string>, sides, {}, "Names that the peer knows.");
ABSL_FLAG(int, rounds, 5, "Interleaved rounds of each shape.");
ABSL_FLAG(absl::Duration, reading, absl::Milliseconds(20),
          "Sampling of one side in one round.");
ABSL_FLAG(bool, least, false,
          "On a CPU that others use: a reading is its least sample, disturbed "
          "or not.");
ABSL_FLAG(absl::Duration, patience, absl::Minutes(4),
          "With one answer of the peer.");
ABSL_FLAG(int, worst, 12, "Shapes listed where our default stands lowest.");
ABSL_FLAG(std::string, json, "", "File for all results; empty: none.");
ABSL_FLAG(std::string, state, "/tmp/optrail-any-shape",
          "Folder of tuned configs, sessions and the drawn workload.");

namespace optrail::suites {
namespace {

absl::Status CheckFlags(bool is_gpu) {
  for (const auto& [name, value] :
       {std::make_pair("shapes", absl::GetFlag(FLAGS_shapes)),
        std::make_pair("rounds", absl::GetFlag(FLAGS_rounds))}) {
    if (value < 1 || value > 100000) {
      return absl::InvalidArgumentError(
          absl::StrCat("flag --", name, ": ", value, ", expected 1 to 100000"));
    }
  }
  if (absl::GetFlag(FLAGS_multiple_of) < 1 ||
      absl::GetFlag(FLAGS_multiple_of) > 1024) {
    return absl::InvalidArgumentError(
        absl::StrCat("flag --multiple_of: ", absl::GetFlag(FLAGS_multiple_of),
                     ", expected 1 to 1024"));
  }
  for (const auto& [name, value] :
       {std::make_pair("tune_trials", absl::GetFlag(FLAGS_tune_trials)),
        std::make_pair("random_configs",
                       absl::GetFlag(FLAGS_random_configs))}) {
    if (value < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("flag --", name, ": ", value, ", expected 0 or more"));
    }
  }
  if (absl::GetFlag(FLAGS_json).empty() &&
      (absl::GetFlag(FLAGS_random_configs) > 0 ||
       !absl::GetFlag(FLAGS_variants).empty())) {
    return absl::InvalidArgumentError(
        "flags --random_configs and --variants: only --json tells what they "
        "measure; name a file there");
  }
  if (absl::GetFlag(FLAGS_peer).empty() != absl::GetFlag(FLAGS_sides).empty()) {
    return absl::InvalidArgumentError(
        "flags --peer and --sides: one without the other; expected a command "
        "and the sides that it answers for");
  }
  if (is_gpu && absl::GetFlag(FLAGS_threads) != 1) {
    return absl::InvalidArgumentError(
        "flag --threads is of CPUs; leave it out with this device");
  }
  return absl::OkStatus();
}

absl::StatusOr<RandomShapeOptions> DrawingOptions(bool is_gpu) {
  RandomShapeOptions options;
  options.seed = absl::GetFlag(FLAGS_seed);
  options.count = absl::GetFlag(FLAGS_shapes);
  const std::string type = absl::GetFlag(FLAGS_dtype);
  OPTRAIL_ASSIGN_OR_RETURN(options.type,
                           tuning::ParseDataType(!type.empty() ? type
                                                 : is_gpu      ? "bf16"
                                                               : "f32"));
  const double mb = absl::GetFlag(FLAGS_max_mb);
  const double mflop = absl::GetFlag(FLAGS_max_mflop);
  options.max_bytes = 1e6 * (mb > 0 ? mb : is_gpu ? 1024 : 64);
  options.max_flop = 1e6 * (mflop > 0 ? mflop : is_gpu ? 2e6 : 600);
  options.min_flop = 1e6 * absl::GetFlag(FLAGS_min_mflop);
  options.multiple_of = absl::GetFlag(FLAGS_multiple_of);
  options.max_reference_flop = 1e6 * absl::GetFlag(FLAGS_max_reference_mflop);
  return options;
}

// Parses --where, which may read the dimensions of shapes alone.
absl::StatusOr<tuning::Expression> ParseWhere() {
  tuning::Scope scope;
  size_t at = 0;
  absl::StatusOr<tuning::Expression> where =
      tuning::Expression::Parse(absl::GetFlag(FLAGS_where), &scope, &at);
  if (!where.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --where, byte ", at, ": ", where.status().message()));
  }
  for (const tuning::Expression::Parameter& read : where->Parameters()) {
    if (absl::StartsWith(read.name, "dim.")) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("flag --where, byte ", read.offset, ": ", read.name,
                     ", expected dimensions alone, such as dim.rows"));
  }
  if (where->type() != tuning::ExprType::kBool) {
    return absl::InvalidArgumentError(absl::StrCat(
        "flag --where: ", absl::GetFlag(FLAGS_where), " is no condition"));
  }
  return where;
}

// Returns a dimension that `where` reads and `op` lacks, or "".
std::string LackedDimension(const tuning::Expression& where,
                            const ops::Operator& op) {
  for (const tuning::Expression::Parameter& read : where.Parameters()) {
    if (!absl::c_linear_search(op.dims(), read.name.substr(4))) {
      return read.name.substr(4);
    }
  }
  return "";
}

bool Holds(const tuning::Expression& where, const proto::Shape& shape) {
  tuning::Frame frame(0);
  const tuning::SlotProgram program =
      frame.Compile(where.Bind([&](absl::string_view name) {
        return absl::optional<tuning::Expression::Value>(
            tuning::DimValue(shape, std::string(name.substr(4))).value_or(0));
      }));
  std::vector<int64_t> slots = frame.slots();
  return program.Holds(slots.data());
}

// Shapes of all operators that match --op and have a kernel of ours here.
absl::StatusOr<std::string> DrawWorkload(proto::DeviceKind device,
                                         RandomShapeOptions options,
                                         const std::string& folder) {
  absl::optional<tuning::Expression> where;
  if (!absl::GetFlag(FLAGS_where).empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(where, ParseWhere());
    options.accepts = [&](const proto::Shape& shape) {
      return Holds(*where, shape);
    };
  }
  const RE2 op_regex(
      absl::GetFlag(FLAGS_op).empty() ? ".*" : absl::GetFlag(FLAGS_op),
      RE2::Quiet);
  if (!op_regex.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("flag --op: ", op_regex.error()));
  }
  proto::Workload workload;
  std::string text = absl::StrCat(
      "# proto-file: suites/proto/workload.proto\n"
      "# proto-message: optrail.proto.Workload\nname: \"any_shape_",
      options.seed, "\"\ndoc: \"drawn by any_shape\"\n");
  bool any = false;
  for (const ops::OperatorEntry* entry : ops::Registry::Get().List()) {
    if (!RE2::FullMatch(entry->op->name(), op_regex)) continue;
    if (where.has_value()) {
      const std::string lacked = LackedDimension(*where, *entry->op);
      if (!lacked.empty()) {
        std::cerr << entry->op->name() << ": left out: no dimension " << lacked
                  << "\n";
        continue;
      }
    }
    const auto own = entry->FindBackend(device, "");
    const auto shapes =
        own.ok() ? RandomShapes(*entry->op, options)
                 : absl::StatusOr<std::vector<proto::Shape>>(own.status());
    if (!shapes.ok() || !ops::Computes(*entry->op, **own, (*shapes)[0]).ok()) {
      std::cerr << entry->op->name() << ": left out: "
                << (shapes.ok() ? "no kernel of ours for the data type"
                                : shapes.status().message())
                << "\n";
      continue;
    }
    any = true;
    for (const proto::Shape& shape : *shapes) {
      absl::StrAppend(&text, "layer { operator_name: \"", entry->op->name(),
                      "\" shape: \"", tuning::CanonicalText(shape), "\" }\n");
    }
  }
  if (!any) {
    return absl::NotFoundError(absl::StrCat(
        "no operator to draw shapes of with --op=", absl::GetFlag(FLAGS_op),
        "; expected one of ours with a "
        "kernel for this device and data type"));
  }
  const std::string path = JoinPath(folder, "drawn.workload.textproto");
  OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(path, text));
  return path;
}

absl::Status Tune(const std::vector<TaskEntry>& tasks,
                  const RunContext& context) {
  TuneDriverOptions options;
  options.tune.budget.set_trials(absl::GetFlag(FLAGS_tune_trials));
  options.worker.shared_folder = context.state;
  options.quiet = true;
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TuneSummary> summaries,
                           TuneTasks(tasks, context, options));
  std::cerr << FailuresText(summaries);
  for (const TuneSummary& summary : summaries) {
    if (summary.error.empty()) continue;
    std::cerr << ShortTaskText(summary.task) << ": " << summary.error << "\n";
  }
  return absl::OkStatus();
}

// Our task of one shape, and those of libraries.
struct Contest {
  TaskEntry own;
  std::vector<TaskEntry> libraries;
};

std::vector<Contest> ContestsOf(const std::vector<TaskEntry>& tasks) {
  std::vector<Contest> contests;
  for (const TaskEntry& task : tasks) {
    if (task.task.backend().empty()) {
      contests.push_back({task, {}});
      continue;
    }
    // SelectTasks has the kind's own backend of a shape first.
    if (contests.empty() || !absl::GetFlag(FLAGS_libraries)) continue;
    if (!task.available.ok() ||
        dynamic_cast<const ops::LibraryBackend*>(task.backend) == nullptr) {
      continue;
    }
    contests.back().libraries.push_back(task);
  }
  return contests;
}

absl::StatusOr<std::string> DefaultConfig(const TaskEntry& task,
                                          const RunContext& context) {
  OPTRAIL_ASSIGN_OR_RETURN(const TaskSpace space,
                           BindTask(task, context.hardware));
  return tuning::CanonicalText(space.bound->default_config());
}

// Those of --variants that are valid here.
absl::StatusOr<std::vector<std::string>> Variants(
    const tuning::BoundSpace& space) {
  std::vector<std::string> configs;
  for (const absl::string_view text :
       absl::StrSplit(absl::GetFlag(FLAGS_variants), ';', absl::SkipEmpty())) {
    const absl::StatusOr<proto::Config> changes = tuning::ParseConfig(text);
    if (!changes.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("flag --variants: ", changes.status().message()));
    }
    proto::Config config = space.default_config();
    for (const proto::KnobValue& change : changes->set()) {
      const auto value = std::find_if(
          config.mutable_set()->begin(), config.mutable_set()->end(),
          [&](const auto& one) { return one.knob() == change.knob(); });
      if (value == config.mutable_set()->end()) {
        return absl::InvalidArgumentError(
            absl::StrCat("flag --variants: no knob \"", change.knob(),
                         "\"; expected one of ",
                         tuning::CanonicalText(space.default_config())));
      }
      *value = change;
    }
    if (space.Validate(config).ok()) {
      configs.push_back(tuning::CanonicalText(config));
    }
  }
  return configs;
}

// Configs that are not `known`, half of them by the prior (--random_configs).
std::vector<std::string> RandomConfigs(const tuning::BoundSpace& space,
                                       std::set<std::string> known) {
  constexpr int kDrawnForOneByPrior = 8;
  const int wanted = absl::GetFlag(FLAGS_random_configs);
  Rng rng(absl::GetFlag(FLAGS_seed));
  std::vector<std::string> configs;
  const auto add = [&](const tuning::Levels& levels) {
    std::string text = tuning::CanonicalText(space.ToConfig(levels));
    if (known.insert(text).second) configs.push_back(std::move(text));
  };
  for (int i = 0; i < wanted / 2; ++i) add(space.Sample(rng));
  std::vector<std::pair<double, tuning::Levels>> by_prior;
  for (int i = 0; i < (wanted + 1) / 2 * kDrawnForOneByPrior; ++i) {
    tuning::Levels levels = space.Sample(rng);
    const double prior = space.Prior(levels).value_or(0);
    by_prior.emplace_back(-prior, std::move(levels));
  }
  std::stable_sort(
      by_prior.begin(), by_prior.end(),
      [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [prior, levels] : by_prior) {
    if (static_cast<int>(configs.size()) >= wanted) break;
    add(levels);
  }
  return configs;
}

// Times and troubles of the sides, of which the first is our default, and
// `tuned_at` tuned; libraries and peers begin at `first_peer`.
void Conclude(const std::vector<Side>& sides, size_t tuned_at,
              size_t first_peer, ShapeResult& result) {
  const bool has_tuned = !result.tuned_config.empty();
  result.default_us = sides[0].Median();
  result.default_failed = !sides[0].trouble.empty();
  if (has_tuned) {
    result.tuned_us = sides[tuned_at].Median();
    result.default_over_tuned = sides[0].MedianOver(sides[tuned_at]);
  }
  for (size_t i = 0; i < sides.size(); ++i) {
    const Side& side = sides[i];
    if (!side.trouble.empty()) {
      result.troubles.push_back(absl::StrCat(side.name, ": ", side.trouble));
    } else if (!side.Median()) {
      result.troubles.push_back(absl::StrCat(
          side.name,
          ": every reading was disturbed; measure on an idle machine"
          ", or with --least"));
    }
    if (i < first_peer || !side.Median()) continue;
    result.peers.push_back(
        {side.name, *side.Median(), side.MedianOver(sides[0]),
         has_tuned ? side.MedianOver(sides[tuned_at]) : absl::nullopt});
  }
}

absl::StatusOr<ShapeResult> Compare(const Contest& contest,
                                    const RunContext& context,
                                    const tuning::TunedConfigStore& store,
                                    LinePeer* peer) {
  const proto::Task& task = contest.own.task;
  ShapeResult result;
  result.op = task.operator_name();
  result.shape = tuning::CanonicalText(task.shape());
  OPTRAIL_ASSIGN_OR_RETURN(const TaskSpace space,
                           BindTask(contest.own, context.hardware));
  result.default_config = tuning::CanonicalText(space.bound->default_config());
  std::vector<Side> sides;
  sides.push_back(
      OurSide("default", contest.own, result.default_config, context));
  const proto::TunedConfig* tuned = FindTuned(store, contest.own, "", space);
  if (absl::GetFlag(FLAGS_tune_trials) > 0) {
    result.tuned_config =
        tuned != nullptr ? tuned->config() : result.default_config;
  }
  // One config under two names would be measured twice.
  size_t tuned_at = 0;
  if (!result.tuned_config.empty() &&
      result.tuned_config != result.default_config) {
    tuned_at = sides.size();
    sides.push_back(
        OurSide("tuned", contest.own, result.tuned_config, context));
  }
  const size_t first_random = sides.size();
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<std::string> configs,
                           Variants(*space.bound));
  std::set<std::string> known(configs.begin(), configs.end());
  known.insert({result.default_config, result.tuned_config});
  for (std::string& config : RandomConfigs(*space.bound, std::move(known))) {
    configs.push_back(std::move(config));
  }
  for (const std::string& config : configs) {
    sides.push_back(SideOfProcess(sides[0], "config", config));
  }
  const size_t first_peer = sides.size();
  for (const TaskEntry& library : contest.libraries) {
    OPTRAIL_ASSIGN_OR_RETURN(std::string config,
                             DefaultConfig(library, context));
    sides.push_back(
        OurSide(library.backend->name(), library, std::move(config), context));
  }
  if (peer != nullptr) {
    for (const std::string& name : absl::GetFlag(FLAGS_sides)) {
      sides.push_back(PeerSide(name));
    }
  }
  SideOptions options;
  options.rounds = absl::GetFlag(FLAGS_rounds);
  options.reading = absl::GetFlag(FLAGS_reading);
  options.least_sample = absl::GetFlag(FLAGS_least);
  MeasureSides(task, options, peer, sides);

  Conclude(sides, tuned_at, first_peer, result);
  for (size_t i = first_random; i < first_peer; ++i) {
    result.configs.push_back({sides[i].config, sides[i].Median()});
  }
  return result;
}

std::string HeaderJson(const RunContext& context, const std::string& device) {
  const nlohmann::ordered_json header = {
      {"device", device},
      {"hardware", context.hardware.id()},
      {"commit", context.commit.id()},
      {"seed", absl::GetFlag(FLAGS_seed)},
      {"shapes_per_operator", absl::GetFlag(FLAGS_shapes)},
      {"tune_trials", absl::GetFlag(FLAGS_tune_trials)},
      {"rounds", absl::GetFlag(FLAGS_rounds)},
      {"sides", absl::GetFlag(FLAGS_sides)}};
  return header.dump();
}

void Print(const std::vector<ShapeResult>& results) {
  const int width = TerminalWidth();
  std::cout << "The best peer's time over ours: above 1, ours is faster.\n\n"
            << SummaryTable(results).ToText(width)
            << "\nWhere our default stands lowest:\n\n"
            << WorstTable(results, absl::GetFlag(FLAGS_worst)).ToText(width);
  for (const ShapeResult& result : results) {
    for (const std::string& trouble : result.troubles) {
      std::cout << result.op << " " << result.shape << ": " << trouble << "\n";
    }
  }
}

absl::StatusOr<std::vector<TaskEntry>> DrawTasks(const ops::DeviceType& type,
                                                 const RunContext& context) {
  const bool is_gpu = type.kind() != proto::CPU;
  OPTRAIL_ASSIGN_OR_RETURN(const RandomShapeOptions drawing,
                           DrawingOptions(is_gpu));
  TaskSelection selection;
  selection.device = type.kind();
  selection.backend = kAllBackends;
  selection.threads = {absl::GetFlag(FLAGS_threads)};
  const std::string cache = absl::GetFlag(FLAGS_cache);
  OPTRAIL_ASSIGN_OR_RETURN(selection.cache_mode,
                           tuning::ParseCacheMode(!cache.empty() ? cache
                                                  : is_gpu       ? "cold"
                                                                 : "hot"));
  const std::string launch = absl::GetFlag(FLAGS_launch);
  if (!launch.empty() || is_gpu) {
    OPTRAIL_ASSIGN_OR_RETURN(
        selection.launch_mode,
        tuning::ParseLaunchMode(launch.empty() ? "graph" : launch));
  }
  OPTRAIL_ASSIGN_OR_RETURN(selection.workload,
                           DrawWorkload(type.kind(), drawing, context.state));
  return SelectTasks(selection, context.hardware);
}

absl::StatusOr<ExitCode> Run() {
  OPTRAIL_ASSIGN_OR_RETURN(
      const ops::DeviceType* type,
      ops::FindDeviceTypeNamed(absl::GetFlag(FLAGS_device)));
  OPTRAIL_RETURN_IF_ERROR(CheckFlags(type->kind() != proto::CPU));
  OPTRAIL_ASSIGN_OR_RETURN(const RunContext context,
                           ContextIn(absl::GetFlag(FLAGS_state), type->kind()));
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TaskEntry> tasks,
                           DrawTasks(*type, context));
  const std::vector<Contest> contests = ContestsOf(tasks);
  std::vector<TaskEntry> own;
  for (const Contest& contest : contests) own.push_back(contest.own);
  if (absl::GetFlag(FLAGS_tune_trials) > 0) {
    OPTRAIL_RETURN_IF_ERROR(Tune(own, context));
  }
  std::unique_ptr<LinePeer> peer;
  if (!absl::GetFlag(FLAGS_peer).empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(peer,
                             LinePeer::Start(absl::GetFlag(FLAGS_peer),
                                             absl::GetFlag(FLAGS_patience)));
  }
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
                           LoadStore(context, own));
  std::vector<ShapeResult> results;
  bool failed = false, disturbed = false;
  for (const Contest& contest : contests) {
    OPTRAIL_ASSIGN_OR_RETURN(ShapeResult result,
                             Compare(contest, context, store, peer.get()));
    failed |= result.default_failed;
    disturbed |= !result.default_us && !result.default_failed;
    std::cerr << "[" << results.size() + 1 << "/" << contests.size() << "] "
              << result.op << " " << result.shape << "\n";
    results.push_back(std::move(result));
    if (const std::string path = absl::GetFlag(FLAGS_json); !path.empty()) {
      OPTRAIL_RETURN_IF_ERROR(WriteFileAtomically(
          JoinPath(WorkingDirectory(), path),
          ResultsJson(HeaderJson(context, type->name()), results)));
    }
  }
  Print(results);
  if (failed) return ExitCode::kCheckFailed;
  return disturbed ? ExitCode::kNotEnoughData : ExitCode::kOk;
}

}  // namespace
}  // namespace optrail::suites

int main(int argc, char** argv) {
  return optrail::suites::EvaluationMain(argc, argv, optrail::suites::Run);
}
