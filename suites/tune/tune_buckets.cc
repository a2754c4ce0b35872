#include "suites/tune/tune_buckets.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "base/exit_code.h"
#include "base/random.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "ops/core/registry.h"
#include "suites/tune/bucket_parts.h"
#include "suites/tune/task_store.h"
#include "tuning/proto/canonical.h"
#include "tuning/store/store.h"
#include "tuning/store/store_files.h"
#include "tuning/store/tuned_entry.h"

namespace optrail::suites {
namespace {

using tuning::Bucket;
using tuning::CanonicalText;

// A range whose ends are closer than this is not cut any more.
constexpr double kLeastRatio = 1.5;
constexpr char kTimeIsOver[] = "the total time is over";

// Runs a session of the task, which defends `incumbent` if there is one.
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
  if (command.tune_one != nullptr) return command.tune_one(task, incumbent);
  TuneDriverOptions options = command.tune;
  options.total_time_ns = 0;
  options.retune = true;
  options.bucket = CanonicalText(task.task.shape());
  options.incumbent = incumbent;
  options.tune.incumbent_margin = command.most_loss;
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<TuneSummary> summaries,
                           TuneTasks({task}, command.context, options));
  // No shape of the range could be tuned then, and nothing is known of any.
  if (summaries[0].broke_off) {
    return absl::UnavailableError(
        absl::StrCat(ShortTaskText(task.task), ": ", summaries[0].error));
  }
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
    checked.why = at + WhyNotTuned(summary);
    return checked;
  }
  const proto::Session& session = *summary.session;
  const proto::Proof& proof = session.proof();
  bool stays = true;
  checked.default_loss = std::max(0.0, proof.gain());
  if (!config.has_value()) {
    checked.loss = checked.default_loss;
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

// The findings at the checked shapes of a range.
struct CheckedRange {
  // A session checks both.
  CheckedConfig config, by_default;
  // Over all checked shapes.
  double loss_sum = 0, default_loss_sum = 0;
  int sessions = 0;
  int random_shapes = 0;
  bool each_is_known = false;  // every shape of the range was measured
  bool is_cut = false;         // by the deadline
};

// The findings of a session at a shape.
struct KnownCheck {
  absl::optional<proto::Config> config;
  proto::Shape shape;
  bool is_random = false;  // and no corner of the range that it was checked for
  CheckedConfig found;
};

bool SameConfig(const absl::optional<proto::Config>& a,
                const absl::optional<proto::Config>& b) {
  return a.has_value() == b.has_value() &&
         (!a.has_value() || CanonicalText(*a) == CanonicalText(*b));
}

// Covers the range of one task.
class BucketTuner {
 public:
  BucketTuner(const TuneBucketsCommand& command, TaskEntry task,
              const tuning::TunedConfigStore& store, absl::Time deadline,
              std::vector<BucketPart>* parts)
      : command_(command),
        task_(std::move(task)),
        store_(store),
        deadline_(deadline),
        parts_(*parts),
        rng_(command.tune.tune.seed) {}

  // The widest range comes first: a deadline leaves narrow ones.
  absl::Status CoverAll(const Bucket& range);

 private:
  struct OpenRange {
    Bucket range;
    // The config that the wider range had in its middle.
    absl::optional<proto::Config> inherited;
    int sessions = 0;  // of the wider range, if this is its first half
  };
  absl::Status Cover(const OpenRange& open);
  // Checks what a session found in the middle of the range, keeps it, and opens
  // the halves if it does not hold for all shapes.
  absl::Status CoverBy(const proto::Session& session, const OpenRange& open);
  TaskEntry At(const proto::Shape& shape) const {
    TaskEntry task = task_;
    *task.task.mutable_shape() = shape;
    return task;
  }
  // Checks all shapes, unless the config fails before; with `default_alone`,
  // unless the default fails, too. The middle was tuned. What is known of this
  // config is not measured again: shapes that were drawn from a wider range are
  // drawn from this one as well.
  absl::StatusOr<CheckedRange> CheckAll(
      const Bucket& range, const absl::optional<proto::Config>& config,
      bool default_alone);
  // Tunes each of the shapes but the one in the middle. Returns why one of them
  // has no config, "" if all have one.
  absl::StatusOr<std::string> TuneEach(const std::vector<proto::Shape>& shapes,
                                       const proto::Shape& centre,
                                       int* sessions);
  absl::Status Keep(const proto::TunedConfig& tuned);
  // Returns whether an earlier call has stored a bucket with all of the range,
  // or an entry of each shape. This call stores parts of ranges that it has
  // left.
  bool IsStored(const Bucket& range) const {
    const tuning::LookupRequest request = tuning::RequestOf(task_.task);
    if (store_.Covers(request, range)) return true;
    const std::vector<proto::Shape> shapes = FewShapes(range);
    return !shapes.empty() &&
           std::all_of(shapes.begin(), shapes.end(),
                       [&](const proto::Shape& shape) {
                         return store_.Covers(request, Bucket(shape));
                       });
  }
  // Returns the bucket of the new entry at `centre` if its range is not
  // verified: the one that an earlier call has verified for the same config, as
  // long as no check of this call refutes it, else the shape alone.
  std::string BucketLeft(const proto::Shape& centre,
                         const proto::TunedConfig& tuned,
                         const absl::optional<proto::Config>& config) const;
  BucketPart& AddPart(const Bucket& range, const char* state,
                      const std::string& why, int sessions);

  const TuneBucketsCommand& command_;
  const TaskEntry task_;
  const tuning::TunedConfigStore& store_;
  const absl::Time deadline_;
  std::vector<BucketPart>& parts_;
  Rng rng_;
  std::vector<OpenRange> open_;
  std::vector<KnownCheck> known_;
};

BucketPart& BucketTuner::AddPart(const Bucket& range, const char* state,
                                 const std::string& why, int sessions) {
  BucketPart& part = parts_.emplace_back(range);
  const proto::Task& task = task_.task;
  part.task = absl::StrCat(
      task.operator_name(),
      task.threads() > 1 ? absl::StrCat(" ", task.threads(), " threads") : "",
      task.backend().empty() ? "" : absl::StrCat(" by ", task.backend()));
  part.state = state;
  part.why = why;
  part.sessions = sessions;
  return part;
}

// The entry of a session with a winner.
proto::TunedConfig EntryOf(const proto::Session& session) {
  proto::TunedConfig tuned = TunedConfigOf(session);
  tuning::ShortenEntry(&tuned);
  return tuned;
}

// The entry of a session as if it had proved nothing better than the default.
proto::TunedConfig DefaultEntryOf(const proto::Session& session) {
  proto::TunedConfig tuned = TunedConfigOf(session);
  tuned.set_config(CanonicalText(DefaultFinalist(session)->config()));
  tuned.set_time_ns(tuned.default_time_ns());
  tuned.mutable_proof()->set_claimed(false);
  tuning::ShortenEntry(&tuned);
  return tuned;
}

// Absent: the default stayed.
absl::optional<proto::Config> ConfigOf(const proto::TunedConfig& tuned,
                                       const proto::Session& session) {
  return tuned.ties() ? absl::nullopt : absl::make_optional(session.winner());
}

// Adds what one shape says to what the shapes before it say.
void Join(const CheckedConfig& at, CheckedConfig* all) {
  if (all->holds && !at.holds) all->why = at.why;
  all->holds = all->holds && at.holds;
  all->loss = std::max(all->loss, at.loss);
}

absl::StatusOr<CheckedRange> BucketTuner::CheckAll(
    const Bucket& range, const absl::optional<proto::Config>& config,
    bool default_alone) {
  CheckedRange all;
  all.config.holds = true;
  all.by_default.holds = true;
  std::set<std::string> seen = {CanonicalText(range.Centre())};
  const auto add = [&](const KnownCheck& check) {
    CheckedConfig by_default;
    by_default.loss = check.found.default_loss;
    by_default.holds = check.found.default_loss <= command_.most_loss;
    Join(check.found, &all.config);
    Join(by_default, &all.by_default);
    all.loss_sum += check.found.loss;
    all.default_loss_sum += by_default.loss;
    all.random_shapes += check.is_random;
    seen.insert(CanonicalText(check.shape));
  };
  for (const KnownCheck& check : known_) {
    if (SameConfig(check.config, config) && range.Contains(check.shape)) {
      add(check);
    }
  }
  const std::vector<proto::Shape> corners = range.Corners();
  const int random_shapes = RandomShapes(range, command_.random_shapes);
  for (size_t i = 0;
       all.config.holds || (default_alone && all.by_default.holds); ++i) {
    KnownCheck check{config, {}, i >= corners.size(), {}};
    if (check.is_random && all.random_shapes >= random_shapes) break;
    check.shape = check.is_random ? range.RandomShape(rng_) : corners[i];
    if (seen.count(CanonicalText(check.shape)) > 0) {
      // A random shape that was checked before counts: it was drawn.
      all.random_shapes += check.is_random;
      continue;
    }
    all.is_cut = command_.now() > deadline_;
    if (all.is_cut) break;
    OPTRAIL_ASSIGN_OR_RETURN(check.found,
                             CheckConfig(command_, At(check.shape), config));
    ++all.sessions;
    add(check);
    known_.push_back(std::move(check));
  }
  const std::vector<proto::Shape> few = FewShapes(range);
  all.each_is_known =
      !few.empty() &&
      std::all_of(few.begin(), few.end(), [&](const proto::Shape& shape) {
        return seen.count(CanonicalText(shape)) > 0;
      });
  return all;
}

std::string BucketTuner::BucketLeft(
    const proto::Shape& centre, const proto::TunedConfig& tuned,
    const absl::optional<proto::Config>& config) const {
  const std::string alone = CanonicalText(centre);
  const TaskEntry task = At(centre);
  tuning::LookupRequest request = tuning::RequestOf(task.task);
  const tuning::LookupResult former = store_.Lookup(request);
  if (former.source != tuning::LookupSource::kExact || former.unverified ||
      former.tuned->bucket().empty() ||
      former.tuned->config() != tuned.config()) {
    return alone;
  }
  const Bucket bucket = *Bucket::Parse(former.tuned->bucket());
  const bool refuted =
      std::any_of(known_.begin(), known_.end(), [&](const KnownCheck& check) {
        return SameConfig(check.config, config) && !check.found.holds &&
               bucket.Contains(check.shape);
      });
  return refuted ? alone : bucket.Text();
}

absl::Status BucketTuner::Keep(const proto::TunedConfig& tuned) {
  const proto::Task& task = task_.task;
  return tuning::WriteOverlay(command_.context.store, task.operator_name(),
                              task.hardware_id(), task.device_kind(), tuned);
}

absl::StatusOr<std::string> BucketTuner::TuneEach(
    const std::vector<proto::Shape>& shapes, const proto::Shape& centre,
    int* sessions) {
  for (const proto::Shape& shape : shapes) {
    const std::string text = CanonicalText(shape);
    if (text == CanonicalText(centre)) continue;
    if (command_.now() > deadline_) return std::string(kTimeIsOver);
    OPTRAIL_ASSIGN_OR_RETURN(
        const TuneSummary summary,
        Tune(command_, At(shape), /*incumbent=*/absl::nullopt));
    ++*sessions;
    if (!summary.session.has_value() || !summary.session->has_winner()) {
      return absl::StrCat("at ", text, ": ", WhyNotTuned(summary));
    }
    proto::TunedConfig tuned = EntryOf(*summary.session);
    tuned.set_bucket(
        BucketLeft(shape, tuned, ConfigOf(tuned, *summary.session)));
    OPTRAIL_RETURN_IF_ERROR(Keep(tuned));
  }
  return std::string();
}

absl::Status BucketTuner::CoverAll(const Bucket& range) {
  const size_t first = parts_.size();
  open_.push_back({range, absl::nullopt});
  while (!open_.empty()) {
    const auto widest = std::max_element(
        open_.begin(), open_.end(), [](const auto& a, const auto& b) {
          return a.range.Doublings() < b.range.Doublings();
        });
    const OpenRange next = *widest;
    open_.erase(widest);
    OPTRAIL_RETURN_IF_ERROR(Cover(next));
  }
  SortParts(first, &parts_);
  return absl::OkStatus();
}

absl::Status BucketTuner::Cover(const OpenRange& open) {
  const Bucket& range = open.range;
  const absl::optional<proto::Config>& inherited = open.inherited;
  if (!command_.tune.retune && IsStored(range)) {
    AddPart(range, "verified", "tuned already", open.sessions);
    return absl::OkStatus();
  }
  if (command_.now() > deadline_) {
    AddPart(range, "not reached", kTimeIsOver, open.sessions);
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
    AddPart(range, "not verified", WhyNotTuned(summary), open.sessions + 1);
    return absl::OkStatus();
  }
  return CoverBy(*summary.session, open);
}

absl::Status BucketTuner::CoverBy(const proto::Session& session,
                                  const OpenRange& open) {
  const Bucket& range = open.range;
  const proto::Shape centre = range.Centre();
  proto::TunedConfig tuned = EntryOf(session);
  const absl::optional<proto::Config> config = ConfigOf(tuned, session);
  const auto halves = range.Split(kLeastRatio);
  const double gain = session.has_proof() ? session.proof().gain() : 0;
  const bool default_may_hold =
      config.has_value() && session.has_proof() && gain <= command_.most_loss;
  const bool default_alone = !halves.has_value() && default_may_hold;
  OPTRAIL_ASSIGN_OR_RETURN(const CheckedRange checked,
                           CheckAll(range, config, default_alone));
  const bool default_holds = default_may_hold && checked.by_default.holds;
  const bool holds = !checked.is_cut &&
                     (checked.config.holds || (default_alone && default_holds));
  // If both hold, the one that loses less in the mean is taken: a config that a
  // wider range had in its middle may be a little slower all over this one.
  const bool by_default =
      holds && default_holds &&
      (!checked.config.holds || std::max(0.0, gain) + checked.default_loss_sum <
                                    std::max(0.0, -gain) + checked.loss_sum);
  if (by_default) tuned = DefaultEntryOf(session);
  tuned.set_bucket(holds ? range.Text() : BucketLeft(centre, tuned, config));
  OPTRAIL_RETURN_IF_ERROR(Keep(tuned));
  int sessions = open.sessions + 1 + checked.sessions;
  if (checked.is_cut) {
    AddPart(range, "not reached", kTimeIsOver, sessions);
    return absl::OkStatus();
  }
  if (!holds && halves.has_value()) {
    open_.push_back({halves->first, config, sessions});
    open_.push_back({halves->second, config});
    return absl::OkStatus();
  }
  std::string why = holds ? "" : checked.config.why;
  const std::vector<proto::Shape> shapes =
      holds ? std::vector<proto::Shape>() : FewShapes(range);
  if (!shapes.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(why, TuneEach(shapes, centre, &sessions));
  }
  BucketPart& part = AddPart(range,
                             why.empty()          ? "verified"
                             : why == kTimeIsOver ? "not reached"
                                                  : "not verified",
                             why, sessions);
  if (!shapes.empty() && why.empty()) {
    part.config = "one for each shape";
    return absl::OkStatus();
  }
  part.config = tuned.ties() ? "the default" : tuned.config();
  part.gain = !tuned.ties() && session.proof().claimed() ? gain : 0;
  part.loss = by_default ? std::max(gain, checked.by_default.loss)
                         : checked.config.loss;
  if (holds) {
    part.random_shapes = checked.random_shapes;
    part.each_is_known = checked.each_is_known;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> RunTuneBuckets(const TuneBucketsCommand& command,
                                   std::ostream& out, std::ostream& notes) {
  OPTRAIL_RETURN_IF_ERROR(CheckRangeOptions(command.range, command.tune));
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::vector<TaskEntry> tasks,
      TasksOfRange(command.selection, command.range, command.context.hardware));
  const absl::Time end =
      command.tune.total_time_ns > 0
          ? command.now() + absl::Nanoseconds(command.tune.total_time_ns)
          : absl::InfiniteFuture();
  std::vector<BucketPart> parts;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const absl::Time now = command.now();
    const absl::Time deadline =
        now + (end - now) / static_cast<int64_t>(tasks.size() - i);
    OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
                             LoadStore(command.context, {tasks[i]}));
    OPTRAIL_RETURN_IF_ERROR(
        BucketTuner(command, tasks[i], store, deadline, &parts)
            .CoverAll(command.range));
  }
  out << FormatParts(parts, command.format);
  const bool all_verified = std::all_of(
      parts.begin(), parts.end(),
      [](const BucketPart& part) { return part.state == "verified"; });
  if (all_verified) return 0;
  notes << "the default is used where no bucket is verified; next: the same "
           "command with a larger budget\n";
  return ToInt(ExitCode::kCheckFailed);
}

}  // namespace optrail::suites
