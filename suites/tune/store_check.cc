#include "suites/tune/store_check.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/exit_code.h"
#include "base/status_macros.h"
#include "base/text/units.h"
#include "ops/core/registry.h"
#include "re2/re2.h"
#include "suites/tune/task_store.h"
#include "suites/tune/tune_buckets.h"
#include "tracker/command/command_support.h"
#include "tuning/proto/canonical.h"
#include "tuning/search/strategies.h"
#include "tuning/store/bucket.h"
#include "tuning/store/store_files.h"
#include "tuning/store/tuned_entry.h"

namespace optrail::suites {
namespace {

// A proof decides within it, or hardly ever.
constexpr absl::Duration kLeastProof = absl::Seconds(1);
constexpr absl::Duration kMostProof = absl::Seconds(20);
// Shorter searches are not worth their start.
constexpr absl::Duration kLeastSearch = absl::Seconds(5);

enum class State { kAffected, kHolds, kFails, kUndecided, kRetuned, kSkipped };

struct Entry {
  std::string operator_name;
  proto::TunedConfig tuned;
  TaskEntry task;
  State state = State::kAffected;
  std::string text;         // why it is here, then what came of it
  bool current = false;     // its kernel is today's
  bool of_overlay = false;  // else of the build
};

TaskSelection SelectionOf(const proto::TunedConfigs& file,
                          const proto::TunedConfig& tuned) {
  TaskSelection selection;
  selection.op_regex = RE2::QuoteMeta(file.operator_name());
  // Taken as a pattern and, where no file lists it, as a shape.
  selection.shape_regex = tuned.shape();
  selection.threads = {tuned.threads()};
  selection.device = file.device_kind();
  selection.backend = tuned.backend();
  selection.cache_mode = tuned.cache_mode();
  selection.launch_mode = tuned.launch_mode();
  return selection;
}

// The task of an entry. NotFound where this program has no such kernel.
absl::StatusOr<TaskEntry> TaskOf(const proto::TunedConfigs& file,
                                 const proto::TunedConfig& tuned,
                                 const proto::Hardware& hardware) {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<TaskEntry> tasks,
                           SelectTasks(SelectionOf(file, tuned), hardware));
  for (TaskEntry& task : tasks) {
    if (tuning::CanonicalText(task.task.shape()) != tuned.shape()) continue;
    OPTRAIL_RETURN_IF_ERROR(task.available);
    return std::move(task);
  }
  return absl::NotFoundError("no such shape");
}

bool IsCurrent(const TaskEntry& task, const proto::TunedConfig& tuned) {
  return tuned.kernel_id() == task.task.kernel_id();
}

struct Selected {
  std::vector<Entry> entries;
  int proven = 0;     // with today's kernel, and therefore no entries
  int of_build = 0;   // affected, of the build, and not asked for
  int elsewhere = 0;  // for other hardware
};

// Adds the entries of one layer.
absl::Status SelectFrom(const std::vector<proto::TunedConfigs>& files,
                        bool of_overlay, const RE2& pattern,
                        const StoreCheckCommand& command, Selected* selected) {
  const proto::Hardware& hardware = command.context.hardware;
  for (const proto::TunedConfigs& file : files) {
    if (!command.op_regex.empty() &&
        !tracker::MatchesWhole(pattern, file.operator_name())) {
      continue;
    }
    if (file.hardware_id() != hardware.id()) {
      selected->elsewhere += file.tuned_size();
      continue;
    }
    for (const proto::TunedConfig& tuned : file.tuned()) {
      Entry entry;
      entry.operator_name = file.operator_name();
      entry.tuned = tuned;
      entry.of_overlay = of_overlay;
      absl::StatusOr<TaskEntry> task = TaskOf(file, tuned, hardware);
      if (!task.ok()) {
        entry.state = State::kSkipped;
        entry.text = std::string(task.status().message());
      } else {
        entry.task = *std::move(task);
        entry.current = IsCurrent(entry.task, tuned);
        if (entry.current && !command.all) {
          ++selected->proven;
          continue;
        }
        entry.text =
            entry.current
                ? "its kernel has not changed"
                : absl::StrCat("its kernel has changed: ", tuned.kernel_id(),
                               " is now ", entry.task.task.kernel_id());
      }
      if (!of_overlay && !command.all) {
        ++selected->of_build;
        continue;
      }
      if (entry.state == State::kAffected &&
          (!tuned.objective().empty() || tuned.devices() > 1)) {
        entry.state = State::kSkipped;
        entry.text = absl::StrCat("tuned for ", tuned.objective(),
                                  "; next: optrail tune --retune");
      }
      selected->entries.push_back(std::move(entry));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Selected> SelectEntries(const StoreCheckCommand& command) {
  OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<RE2> pattern,
                           tracker::CompilePattern("op", command.op_regex));
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
                           LoadWholeStore(command.context));
  Selected selected;
  for (const auto layer :
       {tuning::StoreLayer::kOverlay, tuning::StoreLayer::kCheckedIn}) {
    OPTRAIL_RETURN_IF_ERROR(SelectFrom(store.Contents(layer),
                                       layer == tuning::StoreLayer::kOverlay,
                                       *pattern, command, &selected));
  }
  return selected;
}

// Says why there is nothing to list: no entry needs a check, or there is none.
std::string NothingListedText(const StoreCheckCommand& command,
                              const Selected& selected) {
  const std::string of = absl::StrCat(
      command.op_regex.empty() ? ""
                               : absl::StrCat(" of --op=", command.op_regex),
      " for ", command.context.hardware.id());
  const std::string of_build =
      selected.of_build == 0
          ? ""
          : absl::StrCat(selected.of_build,
                         selected.of_build == 1 ? " config that the build has"
                                                : " configs that the build has",
                         of, " may need a check; next: --all\n");
  if (selected.proven > 0) {
    return absl::StrCat(selected.proven == 1
                            ? absl::StrCat("the one tuned config", of, " was")
                            : absl::StrCat("all ", selected.proven,
                                           " tuned configs", of, " were"),
                        " proven with the kernel of today\n", of_build);
  }
  if (!of_build.empty()) return of_build;
  return absl::StrCat(
      "nothing to check: this program knows no tuned config", of,
      selected.elsewhere > 0
          ? absl::StrCat(", and ", selected.elsewhere, " for other hardware")
          : "",
      "; next: optrail tune --op=",
      command.op_regex.empty() ? "OPERATOR" : command.op_regex, "\n");
}

std::string GainText(const proto::Proof& proof) {
  return absl::StrCat(
      FormatChange(proof.gain()), " (", FormatChange(proof.gain_low()), " to ",
      FormatChange(proof.gain_high()), ", ", proof.rounds(), " paired rounds)");
}

// Enters the result of a session that tried the stored config alone.
void Judge(const TuneSummary& summary, double min_gain, Entry* entry) {
  entry->state = State::kFails;
  if (!summary.error.empty()) {
    entry->text = summary.error;
    entry->state = State::kUndecided;
  } else if (!summary.session.has_value()) {
    entry->text = "its config is not valid any more";
  } else if (!summary.session->has_proof()) {
    entry->text = tuning::CanonicalText(summary.session->winner()) ==
                          entry->tuned.config()
                      ? "it is the default config"
                  : !entry->tuned.numerics_limit().empty()
                      ? absl::StrCat(
                            "its config does not work any more, or is "
                            "not ",
                            entry->tuned.numerics_limit(), " any more")
                      : "its config does not work any more";
  } else {
    const proto::Proof& proof = summary.session->proof();
    entry->text = GainText(proof);
    if (proof.claimed()) {
      entry->state = State::kHolds;
    } else if (!proof.has_gain_high() || proof.gain_high() > min_gain) {
      entry->state = State::kUndecided;
    }
  }
}

// Says why the config does not hold at a corner of its bucket any more, beside
// the default there; "": it does. Nothing is kept.
absl::StatusOr<std::string> WhyBucketEnds(const StoreCheckCommand& command,
                                          TuneDriverOptions options,
                                          const Entry& entry,
                                          const tuning::Bucket& bucket) {
  OPTRAIL_ASSIGN_OR_RETURN(const proto::Config config,
                           tuning::ParseConfig(entry.tuned.config()));
  options.keep = false;
  options.forget_trials = true;
  const TuneBucketsCommand buckets{command.context, {}, bucket, options};
  for (const proto::Shape& corner : bucket.Corners()) {
    TaskEntry at = entry.task;
    if (tuning::CanonicalText(corner) == entry.tuned.shape()) continue;
    *at.task.mutable_shape() = corner;
    OPTRAIL_ASSIGN_OR_RETURN(const CheckedConfig checked,
                             CheckConfig(buckets, at, config));
    if (!checked.holds) return checked.why;
  }
  return "";
}

// There is nothing to measure where the default had won.
void JudgeDefault(Entry& entry) {
  entry.state = entry.current ? State::kHolds : State::kUndecided;
  absl::StrAppend(&entry.text,
                  entry.current
                      ? "; no config was proven better than the default"
                      : "; the default had won, and only a search tells "
                        "whether it still does");
}

// Proves one stored config against the default: better at its own shape, and no
// worse than a bucket may be at the corners of its bucket.
absl::Status Verify(const StoreCheckCommand& command, absl::Duration proof_time,
                    Entry* entry) {
  TuneDriverOptions options = command.tune;
  OPTRAIL_RETURN_IF_ERROR(
      options.tune.SetNumericsLimit(entry->tuned.numerics_limit()));
  options.retune = false;
  options.total_trials = options.total_time_ns = 0;
  options.tune.budget.Clear();
  // The default may have to tell its class.
  options.tune.budget.set_trials(entry->tuned.numerics_limit().empty() ? 1 : 2);
  options.tune.strategy = tuning::kDefaultStrategy;
  options.tune.proof.max_time = proof_time;
  std::string why_bucket_ends;
  if (!entry->tuned.bucket().empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(const tuning::Bucket bucket,
                             tuning::Bucket::Parse(entry->tuned.bucket()));
    const auto shapes = static_cast<double>(1 + bucket.Corners().size());
    if (proof_time / shapes < kLeastProof) {
      entry->state = State::kUndecided;
      entry->text = absl::StrCat("the time is too short for the ", shapes,
                                 " shapes of its bucket that are checked");
      return absl::OkStatus();
    }
    options.tune.proof.max_time = proof_time / shapes;
    OPTRAIL_ASSIGN_OR_RETURN(why_bucket_ends,
                             WhyBucketEnds(command, options, *entry, bucket));
    options.bucket =
        why_bucket_ends.empty() ? entry->tuned.bucket() : entry->tuned.shape();
  }
  options.stored_only = true;
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TuneSummary> summaries,
                           TuneTasks({entry->task}, command.context, options));
  Judge(summaries[0], options.tune.proof.min_gain, entry);
  if (!why_bucket_ends.empty()) {
    absl::StrAppend(&entry->text, "; its bucket ", entry->tuned.bucket(),
                    " ends, ", why_bucket_ends);
  }
  return absl::OkStatus();
}

absl::Status Retune(const StoreCheckCommand& command, absl::Duration time,
                    Entry* entry) {
  TuneDriverOptions options = command.tune;
  OPTRAIL_RETURN_IF_ERROR(
      options.tune.SetNumericsLimit(entry->tuned.numerics_limit()));
  options.retune = true;
  options.defend_stored = false;
  options.total_trials = options.total_time_ns = 0;
  options.tune.budget.Clear();
  options.tune.budget.set_time_ns(absl::ToInt64Nanoseconds(time / 2));
  options.tune.proof.max_time = time / 4;
  OPTRAIL_ASSIGN_OR_RETURN(const std::vector<TuneSummary> summaries,
                           TuneTasks({entry->task}, command.context, options));
  const TuneSummary& summary = summaries[0];
  if (!summary.error.empty() || !summary.session.has_value() ||
      !summary.session->has_winner()) {
    entry->text = WhyNotTuned(summary);
    return absl::OkStatus();
  }
  const bool stays = entry->tuned.ties() && !summary.session->proof().claimed();
  entry->state = stays ? State::kHolds : State::kRetuned;
  entry->tuned.set_config(tuning::CanonicalText(summary.session->winner()));
  absl::StrAppend(
      &entry->text, "; now ",
      summary.session->has_proof() && summary.session->proof().claimed()
          ? GainText(summary.session->proof())
          : "the default stays");
  return absl::OkStatus();
}

// All that are chosen, as long as there is time: an equal share of what is left
// for each, or the first of them with `least` each where that is less.
template <class Chosen, class Step>
absl::Status ForEach(std::vector<Entry>& entries, const Chosen& chosen,
                     absl::Time deadline, absl::Duration least,
                     absl::Duration most, const Step& step) {
  int64_t count = std::count_if(entries.begin(), entries.end(), chosen);
  for (Entry& entry : entries) {
    if (!chosen(entry)) continue;
    const absl::Duration left = deadline - absl::Now();
    if (left < least) return absl::OkStatus();
    const absl::Duration share =
        std::min(std::max(left / std::max<int64_t>(1, count), least), most);
    OPTRAIL_RETURN_IF_ERROR(step(share, &entry));
    --count;
  }
  return absl::OkStatus();
}

// Proves the entries, and tunes again what wants it.
absl::Status Check(const StoreCheckCommand& command, absl::Time deadline,
                   std::vector<Entry>& entries) {
  const auto unchecked = [](const Entry& entry) {
    return entry.state == State::kAffected;
  };
  for (Entry& entry : entries) {
    if (unchecked(entry) && entry.tuned.ties()) JudgeDefault(entry);
  }
  // A trial, opening processes and the proof take about twice the proof.
  OPTRAIL_RETURN_IF_ERROR(ForEach(entries, unchecked, deadline, 2 * kLeastProof,
                                  2 * kMostProof,
                                  [&](absl::Duration share, Entry* entry) {
                                    return Verify(command, share / 2, entry);
                                  }));
  const int64_t late = std::count_if(entries.begin(), entries.end(), unchecked);
  for (Entry& entry : entries) {
    if (!unchecked(entry)) continue;
    absl::StrAppend(&entry.text, "; the time was over before its turn (",
                    absl::FormatDuration(command.time), " for ", entries.size(),
                    entries.size() == 1 ? " entry, " : " entries, ", late,
                    " of them late)");
  }
  if (!command.retune) return absl::OkStatus();
  return ForEach(
      entries,
      [](const Entry& entry) {
        return entry.state == State::kFails ||
               (entry.state == State::kUndecided && entry.tuned.ties());
      },
      deadline, kLeastSearch, absl::InfiniteDuration(),
      [&](absl::Duration share, Entry* entry) {
        return Retune(command, share, entry);
      });
}

const char* NameOf(State state) {
  switch (state) {
    case State::kAffected:
      return "not checked";
    case State::kHolds:
      return "holds";
    case State::kFails:
      return "fails";
    case State::kUndecided:
      return "undecided";
    case State::kRetuned:
      return "tuned again";
    case State::kSkipped:
      return "left out";
  }
  return "";
}

}  // namespace

absl::StatusOr<int> RunStoreCheck(const StoreCheckCommand& command,
                                  std::ostream& out, std::ostream& notes) {
  const absl::Time deadline = absl::Now() + command.time;
  // A file that cannot be read is no proof of what it holds.
  OPTRAIL_RETURN_IF_ERROR(tuning::ReadOverlay(command.context.store).status());
  OPTRAIL_ASSIGN_OR_RETURN(Selected selected, SelectEntries(command));
  std::vector<Entry>& entries = selected.entries;
  if (!command.dry_run) {
    OPTRAIL_RETURN_IF_ERROR(Check(command, deadline, entries));
  }
  Table table({{"entry", Align::kLeft, "", Clip::kFold},
               {"state"},
               {"why", Align::kLeft, "", Clip::kFold},
               {"config"}});
  bool fails = false, open = false;
  for (const Entry& entry : entries) {
    fails = fails || entry.state == State::kFails;
    open = open || entry.state == State::kUndecided ||
           (entry.state == State::kAffected && !command.dry_run);
    table.AddRow(
        {absl::StrCat(entry.operator_name, " ", tuning::EntryText(entry.tuned),
                      entry.of_overlay ? "" : ", of the build"),
         NameOf(entry.state), entry.text, entry.tuned.config()});
  }
  if (entries.empty()) {
    notes << NothingListedText(command, selected);
    if (command.format == OutputFormat::kTable) return 0;
  }
  out << table.Format(command.format, TerminalWidth());
  if (fails) {
    notes << "next: a longer --time_budget, or optrail tune --retune for the "
             "entries that fail\n";
    return ToInt(ExitCode::kCheckFailed);
  }
  if (open) {
    notes << "next: the same command with a longer --time_budget\n";
    return ToInt(ExitCode::kNotEnoughData);
  }
  return 0;
}

}  // namespace optrail::suites
