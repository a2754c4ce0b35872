#include "suites/tune/tune_buckets.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/exit_code.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "ops/core/registry.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/store_files.h"
#include "tuning/store/tuned_entry.h"

namespace optrail::suites {
namespace {

using tuning::Bucket;
using tuning::CanonicalText;

// A range whose ends are closer than this is not cut any more.
constexpr double kLeastRatio = 2;

// One line of the result.
struct Part {
  std::string task, bucket, state, why, config;
  double gain = 0;  // over the default, in the middle
  double loss = 0;  // the largest at a shape that was checked
  int sessions = 0;
};

// A session of the task, which defends `incumbent` where there is one.
absl::StatusOr<TuneSummary> Tune(
    const TuneBucketsCommand& command, const TaskEntry& task,
    const absl::optional<proto::Config>& incumbent) {
  TuneSummary summary;
  const absl::Status computes =
      ops::Computes(*task.entry->op, *task.backend, task.task.shape());
  if (!computes.ok()) {
    summary.error = std::string(computes.message());
    return summary;
  }
  TuneDriverOptions options = command.tune;
  options.total_time_ns = 0;
  options.retune = true;
  options.of_range = true;
  options.incumbent = incumbent;
  options.tune.incumbent_margin = command.most_loss;
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<TuneSummary> summaries,
                           TuneTasks({task}, command.context, options));
  return std::move(summaries[0]);
}

}  // namespace

absl::StatusOr<CheckedConfig> CheckConfig(
    const TuneBucketsCommand& command, const TaskEntry& task,
    const absl::optional<proto::Config>& config) {
  const std::string at =
      absl::StrCat("at ", CanonicalText(task.task.shape()), ": ");
  CheckedConfig checked;
  if (config.has_value()) {
    const absl::StatusOr<TaskSpace> space =
        BindTask(task, command.context.hardware);
    if (!space.ok() || !space->Validate(*config).ok()) {
      checked.why = at + "the config is not valid";
      return checked;
    }
  }
  OPTRAIL_ASSIGN_OR_RETURN(const TuneSummary summary,
                           Tune(command, task, config));
  if (!summary.session.has_value() || !summary.session->has_winner()) {
    checked.why =
        at + (summary.error.empty() ? "no config works" : summary.error);
    return checked;
  }
  const proto::Session& session = *summary.session;
  const proto::Proof& proof = session.proof();
  bool stays = true;
  if (!config.has_value()) {
    checked.loss = std::max(0.0, proof.gain());
  } else {
    // Against the best of the search, if another one, and against the default.
    checked.loss = std::max(0.0, session.incumbent_proof().gain());
    if (CanonicalText(proof.candidate()) == CanonicalText(*config)) {
      checked.loss = std::max(checked.loss, -proof.gain());
    }
    stays = CanonicalText(session.winner()) == CanonicalText(*config);
  }
  checked.holds = stays && checked.loss <= command.most_loss;
  checked.why = absl::StrCat(
      at, config.has_value() ? "the default or another config" : "a config",
      " gains ", FormatPercent(checked.loss));
  return checked;
}

namespace {

// Covers the range of one task.
class BucketTuner {
 public:
  BucketTuner(const TuneBucketsCommand& command, TaskEntry task,
              absl::Time deadline, std::vector<Part>* parts)
      : command_(command),
        task_(std::move(task)),
        deadline_(deadline),
        parts_(*parts),
        rng_(command.tune.tune.seed) {}

  // `inherited`: the config that a wider range had in its middle.
  absl::Status Cover(const Bucket& range,
                     const absl::optional<proto::Config>& inherited);

 private:
  TaskEntry At(const proto::Shape& shape) const {
    TaskEntry task = task_;
    *task.task.mutable_shape() = shape;
    return task;
  }
  // Checks all shapes until one fails.
  absl::StatusOr<CheckedConfig> CheckAll(
      const Bucket& range, const absl::optional<proto::Config>& config,
      int* sessions);
  // Returns whether an earlier call has stored a bucket with all of the range.
  absl::StatusOr<bool> IsStored(const Bucket& range) const;
  Part& AddPart(const Bucket& range, const char* state, const std::string& why);

  const TuneBucketsCommand& command_;
  const TaskEntry task_;
  const absl::Time deadline_;
  std::vector<Part>& parts_;
  Rng rng_;
};

Part& BucketTuner::AddPart(const Bucket& range, const char* state,
                           const std::string& why) {
  Part& part = parts_.emplace_back();
  const proto::Task& task = task_.task;
  part.task = absl::StrCat(
      task.operator_name(),
      task.threads() > 1 ? absl::StrCat(" ", task.threads(), " threads") : "",
      task.backend().empty() ? "" : absl::StrCat(" by ", task.backend()));
  part.bucket = range.Text();
  part.state = state;
  part.why = why;
  return part;
}

absl::StatusOr<bool> BucketTuner::IsStored(const Bucket& range) const {
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
                           LoadStore(command_.context, {task_}));
  const tuning::KernelIds ids{task_.task.kernel_id(), task_.former_kernel_id};
  for (const proto::TunedConfigs& file : store.Contents()) {
    if (file.operator_name() != task_.task.operator_name() ||
        file.hardware_id() != task_.task.hardware_id() ||
        file.device_kind() != task_.task.device_kind()) {
      continue;
    }
    for (const proto::TunedConfig& tuned : file.tuned()) {
      if (tuned.bucket().empty() || !ids.Has(tuned.kernel_id()) ||
          !tuned.objective().empty() ||
          tuned.threads() != task_.task.threads() ||
          tuned.cache_mode() != task_.task.cache_mode() ||
          tuned.launch_mode() != task_.task.launch_mode() ||
          tuned.backend() != task_.task.backend()) {
        continue;
      }
      const absl::StatusOr<Bucket> bucket = Bucket::Parse(tuned.bucket());
      if (bucket.ok() && bucket->Contains(range)) return true;
    }
  }
  return false;
}

absl::StatusOr<CheckedConfig> BucketTuner::CheckAll(
    const Bucket& range, const absl::optional<proto::Config>& config,
    int* sessions) {
  std::vector<proto::Shape> shapes = range.Corners();
  for (int i = 0; i < command_.random_shapes; ++i) {
    shapes.push_back(range.RandomShape(rng_));
  }
  std::set<std::string> seen = {CanonicalText(range.Centre())};
  CheckedConfig all;
  all.holds = true;
  for (const proto::Shape& shape : shapes) {
    if (!seen.insert(CanonicalText(shape)).second) continue;
    OPTRAIL_ASSIGN_OR_RETURN(const CheckedConfig checked,
                             CheckConfig(command_, At(shape), config));
    ++*sessions;
    if (!checked.holds) return checked;
    all.loss = std::max(all.loss, checked.loss);
  }
  return all;
}

absl::Status BucketTuner::Cover(
    const Bucket& range, const absl::optional<proto::Config>& inherited) {
  if (!command_.tune.retune) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool stored, IsStored(range));
    if (stored) {
      AddPart(range, "verified", "tuned already");
      return absl::OkStatus();
    }
  }
  if (absl::Now() > deadline_) {
    AddPart(range, "not reached", "the total time is over");
    return absl::OkStatus();
  }
  const proto::Shape centre = range.Centre();
  absl::optional<proto::Config> incumbent;
  if (inherited.has_value()) {
    const auto space = BindTask(At(centre), command_.context.hardware);
    if (space.ok() && space->Validate(*inherited).ok()) incumbent = inherited;
  }
  OPTRAIL_ASSIGN_OR_RETURN(const TuneSummary summary,
                           Tune(command_, At(centre), incumbent));
  if (!summary.session.has_value() || !summary.session->has_winner()) {
    AddPart(range, "not verified",
            summary.error.empty() ? "no config works" : summary.error);
    return absl::OkStatus();
  }
  proto::TunedConfig tuned = TunedConfigOf(*summary.session);
  tuning::ShortenEntry(&tuned);
  absl::optional<proto::Config> config;
  if (!tuned.ties()) config = summary.session->winner();
  int sessions = 1;
  OPTRAIL_ASSIGN_OR_RETURN(const CheckedConfig checked,
                           CheckAll(range, config, &sessions));
  if (checked.holds) {
    tuned.set_bucket(range.Text());
    const proto::Task& task = task_.task;
    OPTRAIL_RETURN_IF_ERROR(
        tuning::WriteOverlay(command_.context.store, task.operator_name(),
                             task.hardware_id(), task.device_kind(), tuned));
  }
  const auto halves = range.Split();
  double ratio = 1;
  const std::vector<proto::Shape> corners = range.Corners();
  for (int i = 0; i < centre.dims_size(); ++i) {
    ratio =
        std::max(ratio, static_cast<double>(corners.back().dims(i).value()) /
                            static_cast<double>(corners[0].dims(i).value()));
  }
  if (checked.holds || ratio < kLeastRatio || !halves.has_value()) {
    Part& part = AddPart(range, checked.holds ? "verified" : "not verified",
                         checked.holds ? "" : checked.why);
    part.config = tuned.ties() ? "the default" : tuned.config();
    part.gain = summary.session->proof().claimed()
                    ? summary.session->proof().gain()
                    : 0;
    part.loss = checked.loss;
    part.sessions = sessions;
    return absl::OkStatus();
  }
  OPTRAIL_RETURN_IF_ERROR(Cover(halves->first, config));
  return Cover(halves->second, config);
}

}  // namespace

absl::StatusOr<int> RunTuneBuckets(const TuneBucketsCommand& command,
                                   std::ostream& out, std::ostream& notes) {
  if (command.tune.total_trials > 0 || !command.tune.tune.objectives.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--shape=", command.range.Text(),
        ": a range is tuned for time, with --trials or --time_budget for each "
        "session and --total_time for all; expected no --total_trials and no "
        "--objective"));
  }
  const absl::Time deadline =
      command.tune.total_time_ns > 0
          ? absl::Now() + absl::Nanoseconds(command.tune.total_time_ns)
          : absl::InfiniteFuture();
  TaskSelection selection = command.selection;
  const std::string lowest = CanonicalText(command.range.Corners()[0]);
  selection.shape_regex = lowest;
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TaskEntry> tasks,
                           SelectTasks(selection, command.context.hardware));
  std::vector<Part> parts;
  bool found = false;
  for (const TaskEntry& task : tasks) {
    if (CanonicalText(task.task.shape()) != lowest) continue;
    found = true;
    OPTRAIL_RETURN_IF_ERROR(task.available);
    OPTRAIL_RETURN_IF_ERROR(BucketTuner(command, task, deadline, &parts)
                                .Cover(command.range, absl::nullopt));
  }
  if (!found) {
    return absl::NotFoundError(
        absl::StrCat("--shape=", command.range.Text(),
                     ": no operator has the shape ", lowest,
                     " in this very text; expected no attribute that has its "
                     "default"));
  }
  Table table({{"task"},
               {"shapes", Align::kLeft, "", Clip::kFold},
               {"state"},
               {"gain", Align::kRight},
               {"loss", Align::kRight, "loss_at_most"},
               {"sessions", Align::kRight},
               {"config", Align::kLeft, "", Clip::kFold},
               {"why", Align::kLeft, "", Clip::kFold}});
  bool all_verified = true;
  for (const Part& part : parts) {
    all_verified = all_verified && part.state == "verified";
    table.AddRow({part.task, part.bucket, part.state,
                  Cell::Number(part.gain, FormatChange(part.gain)),
                  Cell::Number(part.loss, FormatPercent(part.loss)),
                  Cell::Integer(part.sessions), part.config, part.why});
  }
  out << table.Format(command.format, TerminalWidth());
  if (all_verified) return 0;
  notes << "the default is used where no bucket is verified; next: the same "
           "command with a larger budget\n";
  return ToInt(ExitCode::kCheckFailed);
}

}  // namespace optrail::suites
