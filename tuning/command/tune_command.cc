#include "tuning/command/tune_command.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/exit_code.h"
#include "base/file/file.h"
#include "base/hash/hash.h"
#include "base/process/interrupt_note.h"
#include "base/status_macros.h"
#include "base/text/progress.h"
#include "base/text/utf8.h"
#include "tuning/command/command_template.h"
#include "tuning/command/program.h"
#include "tuning/proto/canonical.h"
#include "tuning/proto/stop_reason.h"
#include "tuning/search/strategies.h"
#include "tuning/session/evaluator.h"
#include "tuning/session/objective.h"
#include "tuning/session/parse_objective.h"
#include "tuning/session/results.h"

namespace optrail::tuning {
namespace {

// Rows of the result.
constexpr size_t kShown = 10;

std::map<std::string, std::string> KnobTexts(const proto::Config& config) {
  std::map<std::string, std::string> texts;
  for (const proto::KnobValue& value : config.set()) {
    texts[value.knob()] = CanonicalText(value);
  }
  return texts;
}

// Operators are named so: [a-z0-9_]+.
std::string OperatorNameOf(const proto::TunedCommand& command) {
  std::string name = "command";
  if (command.programs().empty()) return name;
  name += "_";
  // Behind an interpreter, the script's name says more.
  const int named = std::min(1, command.programs_size() - 1);
  for (const char c : FileNameOf(command.programs(named).path())) {
    name += absl::ascii_isalnum(c) ? absl::ascii_tolower(c) : '_';
  }
  return name;
}

absl::StatusOr<std::vector<Metric>> ParseMetrics(
    const TuneCommandOptions& options) {
  if (options.metrics.empty()) {
    return absl::InvalidArgumentError(
        "no metric, expected at least one such as throughput:max");
  }
  std::vector<proto::Objective> objectives;
  for (const std::string& text : options.metrics) {
    OPTRAIL_ASSIGN_OR_RETURN(objectives.emplace_back(), ParseObjective(text));
  }
  OPTRAIL_RETURN_IF_ERROR(SetWeights(options.weights, objectives));
  std::vector<Metric> metrics;
  for (proto::Objective& objective : objectives) {
    metrics.emplace_back().objective = std::move(objective);
  }
  for (const std::string& pattern : options.metric_patterns) {
    OPTRAIL_RETURN_IF_ERROR(SetPattern(pattern, metrics));
  }
  return metrics;
}

Evaluation AnswerOf(const CommandEvaluator& command, const Request& request) {
  const CommandTrial run = command.Evaluate(KnobTexts(request.config()));
  Evaluation answer;
  answer.set_ticket(request.ticket());
  proto::Trial& trial = *answer.mutable_trial();
  *trial.mutable_config() = request.config();
  trial.set_outcome(run.outcome);
  trial.set_detail(SanitiseText(run.detail));
  trial.set_elapsed_ns(absl::ToInt64Nanoseconds(run.elapsed));
  for (size_t i = 0; i < run.values.size(); ++i) {
    const Metric& metric = command.metrics()[i];
    proto::MetricSamples* samples = trial.add_objectives();
    samples->set_metric(metric.name());
    samples->set_direction(metric.objective.direction());
    samples->add_values(run.values[i]);
  }
  return answer;
}

// CommandSlots is what a tuning session (tuning/session/session.h) measures
// with when a command is tuned: as many runs at the same time as there are
// slots, each an answer when it ends.
//
//   const CommandEvaluator command(filled, metrics, limits);
//   CommandSlots evaluator(command, /*slots=*/4);
class CommandSlots : public Evaluator {
 public:
  // `command` must outlive this.
  CommandSlots(const CommandEvaluator& command, int slots)
      : command_(command), slots_(slots) {
    for (int i = 0; i < slots; ++i) threads_.emplace_back([this] { Work(); });
  }

  // Waits for the runs under way.
  ~CommandSlots() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
      waiting_.clear();
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  absl::StatusOr<Offer> Open(const proto::Task&) override {
    Offer offer;
    offer.set_measure_slots(slots_);
    return offer;
  }

  void Submit(Request request) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      waiting_.push_back(std::move(request));
    }
    changed_.notify_all();
  }

  std::vector<Evaluation> Poll(absl::Duration wait) override {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto done = [this] {
      return !answers_.empty() || (waiting_.empty() && running_.empty());
    };
    if (wait == absl::InfiniteDuration()) {
      changed_.wait(lock, done);
    } else {
      changed_.wait_for(lock, absl::ToChronoNanoseconds(wait), done);
    }
    return std::exchange(answers_, {});
  }

  // A run under way goes on, and its answer is dropped.
  void Cancel(int64_t ticket) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
      if (it->ticket() != ticket) continue;
      waiting_.erase(it);
      return;
    }
    cancelled_.push_back(ticket);
  }

 private:
  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (ending_) return;
      const Request request = std::move(waiting_.front());
      waiting_.pop_front();
      running_.push_back(request.ticket());
      lock.unlock();
      Evaluation answer = AnswerOf(command_, request);
      lock.lock();
      running_.erase(
          std::find(running_.begin(), running_.end(), request.ticket()));
      if (std::find(cancelled_.begin(), cancelled_.end(), request.ticket()) ==
          cancelled_.end()) {
        answers_.push_back(std::move(answer));
      }
      changed_.notify_all();
    }
  }

  const CommandEvaluator& command_;
  const int slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> waiting_;
  std::vector<int64_t> running_;
  std::vector<int64_t> cancelled_;
  std::vector<Evaluation> answers_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

// Enters the command, and the task that it is, into a session's header.
void DescribeCommand(const TuneCommandOptions& options,
                     const CommandProgram& program, proto::Session& header) {
  proto::TunedCommand& stored = *header.mutable_command();
  stored.set_command(SanitiseText(options.command));
  stored.set_working_directory(SanitiseText(options.limits.working_directory));
  for (const std::string& pattern : options.metric_patterns) {
    stored.add_metric_patterns(SanitiseText(pattern));
  }
  std::string contents;
  for (const proto::TunedCommand::File& file : program.files) {
    *stored.add_programs() = file;
    absl::StrAppend(&contents, file.fingerprint(), "\n");
  }
  proto::Task& task = *header.mutable_task();
  task.set_operator_name(OperatorNameOf(stored));
  task.set_device_kind(proto::CPU);
  task.set_hardware_id(header.hardware().id());
  task.set_kernel_id(absl::StrCat(
      "command-", Fingerprint(absl::StrJoin(
                      {options.command, absl::StrJoin(options.metrics, ","),
                       absl::StrJoin(options.metric_patterns, "\n"), contents},
                      "\n"))));
}

// All of `setup` but its header; the space must outlive it.
void SetUp(const TuneCommandOptions& options, const BoundSpace& space,
           SessionSetup& setup) {
  setup.default_config = space.default_config();
  setup.propose = [&space](const proto::Session& begun, int batch) {
    ProposerOptions proposer;
    proposer.batch = batch;
    return MakeProposer(space, begun, proposer);
  };
  setup.finalists = options.finalists;
  setup.rank_rounds = options.rank_rounds;
  setup.proof = options.proof;
  // Commands are run to their end.
  setup.race_factor = 0;
  setup.journal_directory = options.journal_directory;
}

void PrintFailures(const proto::Session& session, std::ostream& log) {
  std::map<proto::Outcome, std::pair<int, const proto::Trial*>> failures;
  const int warm = session.warm_start_trial_count();
  for (int i = warm; i < session.trials_size(); ++i) {
    const proto::Trial& trial = session.trials(i);
    if (trial.outcome() == proto::OK) continue;
    auto& [count, first] = failures[trial.outcome()];
    if (count++ == 0) first = &trial;
  }
  for (const auto& [outcome, failure] : failures) {
    log << failure.first << " x " << OutcomeName(outcome)
        << ", first: " << CanonicalText(failure.second->config()) << ": "
        << failure.second->detail() << "\n";
  }
  log << "stopped after " << session.trials_size() - warm
      << " trials: " << StopReasonName(session.stop_reason()) << "\n";
}

}  // namespace

absl::StatusOr<std::unique_ptr<TuneCommand>> TuneCommand::Prepare(
    TuneCommandOptions options) {
  std::unique_ptr<TuneCommand> tuned(new TuneCommand());
  OPTRAIL_ASSIGN_OR_RETURN(const std::string text,
                           ReadFile(options.space_file));
  OPTRAIL_ASSIGN_OR_RETURN(const Space space,
                           Space::Parse(text, options.space_file));
  proto::Session& header = tuned->setup_.header;
  header = options.header;
  if (header.session_id().empty()) {
    header.set_started_unix_ns(Clock::Real()->WallNs());
    header.set_session_id(absl::FormatTime(
        "%Y%m%dT%H%M%SZ-0", absl::FromUnixNanos(header.started_unix_ns()),
        absl::UTCTimeZone()));
  }
  proto::Task& task = *header.mutable_task();
  if (!options.shape.empty()) {
    OPTRAIL_ASSIGN_OR_RETURN(*task.mutable_shape(), ParseShape(options.shape));
  }
  OPTRAIL_ASSIGN_OR_RETURN(tuned->space_,
                           space.Bind(task.shape(), header.hardware()));
  OPTRAIL_ASSIGN_OR_RETURN(
      CommandTemplate command,
      CommandTemplate::Parse(options.command, space.knob_names()));
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<Metric> metrics, ParseMetrics(options));
  if (options.parallel < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "parallel is ", options.parallel, ", expected at least 1"));
  }
  for (const Metric& metric : metrics) {
    *header.add_objectives() = metric.objective;
  }
  OPTRAIL_ASSIGN_OR_RETURN(const CommandProgram program,
                           FindProgram(options.command, options.programs,
                                       options.limits.working_directory));
  tuned->left_out_ = program.left_out;
  DescribeCommand(options, program, header);
  header.set_space_textproto(text);
  header.set_space_hash(space.hash());
  if (const auto count = tuned->space_->count()) {
    header.set_valid_config_count(*count);
  }
  header.set_strategy(options.strategy);
  header.set_seed(options.seed);
  *header.mutable_budget() = options.budget;

  tuned->evaluator_ = std::make_unique<CommandEvaluator>(
      std::move(command), std::move(metrics), options.limits);
  SetUp(options, *tuned->space_, tuned->setup_);
  // A wrong strategy is better known before an hour than after it.
  OPTRAIL_RETURN_IF_ERROR(tuned->setup_.propose(header, 1).status());
  tuned->options_ = std::move(options);
  return tuned;
}

// The first version kept journals that do not say which program they measured.
void TuneCommand::NoteOldJournal(std::ostream& log) const {
  if (options_.journal_directory.empty()) return;
  const std::string key = absl::StrJoin(
      {std::string("optrail tune --command, version 1"), space_->space().hash(),
       options_.shape, CanonicalText(space_->default_config()),
       options_.command, absl::StrJoin(options_.metrics, ","),
       absl::StrJoin(options_.metric_patterns, ","),
       absl::StrJoin(options_.weights, ","),
       options_.strategy == "default" ? std::string(kDefaultStrategy)
                                      : options_.strategy,
       absl::StrCat(options_.seed, "/", options_.parallel),
       absl::FormatDuration(options_.limits.timeout)},
      "\n");
  const std::string path =
      JoinPath(options_.journal_directory,
               absl::StrCat("command-", Fingerprint(key), ".journal"));
  if (!FileExists(path)) return;
  log << "note: " << path
      << " is of an earlier version, which did not note which program it "
         "measured: its trials are left out and measured anew; remove the "
         "file\n";
}

void TuneCommand::NotePrograms(std::ostream& log) const {
  if (setup_.header.command().programs().empty()) {
    log << "note: no file was found that the command runs; name it with "
           "--program=FILE, so that readings of it are not taken for those of "
           "a later version\n";
  }
  for (const std::string& word : left_out_) {
    log << "note: " << SanitiseText(word)
        << " may be made by the command itself: that its contents change is "
           "not noticed unless it is named with --program\n";
  }
}

absl::StatusOr<proto::Session> TuneCommand::Run(std::vector<proto::Trial> known,
                                                std::ostream& log) {
  if (!is_noted_) {
    NotePrograms(log);
    NoteOldJournal(log);
    is_noted_ = true;
  }
  SessionSetup setup = setup_;
  for (proto::Trial& trial : known) {
    const absl::StatusOr<Levels> levels = space_->ToLevels(trial.config());
    if (levels.ok() && space_->IsValid(*levels)) {
      setup.known.push_back(std::move(trial));
    }
  }
  ProgressOptions progress_options;
  progress_options.quiet = options_.quiet;
  Progress bar("tuning", options_.budget.trials(), progress_options);
  const std::string& metric = setup.header.objectives(0).metric();
  const Session* running = nullptr;
  bool is_told = false;
  setup.on_progress = [&](const TuneProgress& now) {
    if (!is_told && running != nullptr) {
      if (const std::string text = running->ShortBudgetText(); !text.empty()) {
        bar.Clear();
        log << "note: " << text << "\n";
        is_told = true;
      }
    }
    bar.Update(now.trials,
               absl::StrCat(now.phase == "search" ? "" : now.phase + ", ",
                            now.best_value ? absl::StrCat("best ", metric, " ",
                                                          *now.best_value)
                                           : "nothing worked yet"));
  };
  CommandSlots slots(*evaluator_, options_.parallel);
  const InterruptNote note(kInterruptedTuning);
  const bool resumed = !setup.journal_directory.empty() && has_journal();
  OPTRAIL_ASSIGN_OR_RETURN(
      const std::unique_ptr<Session> session,
      Session::Open(std::move(setup), slots, *Clock::Real()));
  running = session.get();
  if (resumed) {
    log << "goes on with the journal "
        << SessionJournal::Path(options_.journal_directory, setup_.header)
        << "\n";
  }
  while (!session->search_ended()) OPTRAIL_RETURN_IF_ERROR(session->Advance());
  OPTRAIL_ASSIGN_OR_RETURN(proto::Session finished, session->Finish());
  bar.Finish();
  if (session->ranking_cut()) log << "note: " << kRankingCut << "\n";
  return finished;
}

void TuneCommand::PrintProof(const proto::Session& session,
                             std::ostream& log) const {
  if (const std::string why = NoWinnerText(session); !why.empty()) {
    log << why << "\n";
  } else {
    for (const std::string& failure : FinalistFailures(session)) {
      log << failure << "\n";
    }
  }
  if (session.has_proof()) log << ProofText(session) << "\n";
}

int TuneCommand::Print(const proto::Session& session, std::ostream& out,
                       std::ostream& log) const {
  PrintFailures(session, log);
  const std::vector<proto::Objective> objectives = ObjectivesOf(session);
  std::vector<Result> rows = ResultsOf(session);
  // A config that the search ran once and nobody could run again is no result.
  const NoWinner why = WhyNoWinner(session);
  const ExitCode code = why == NoWinner::kHasOne ? ExitCode::kOk
                        : why == NoWinner::kBusy ? ExitCode::kNotEnoughData
                                                 : ExitCode::kCheckFailed;
  if (rows.empty()) {
    log << NoWinnerText(session) << "\n";
    return ToInt(code);
  }
  const bool front = !NamesWinner(objectives);
  if (front) {
    std::vector<Result> of_front;
    for (const int i : FrontOf(objectives, rows)) of_front.push_back(rows[i]);
    rows = std::move(of_front);
  }
  // Configs that were run again come first: one reading alone may be lucky.
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const Result& a, const Result& b) {
                     if (a.verified != b.verified) return a.verified;
                     const auto cost_a = Cost(objectives, a.values);
                     const auto cost_b = Cost(objectives, b.values);
                     if (!cost_a || !cost_b)
                       return cost_a.has_value() && !cost_b.has_value();
                     return *cost_a < *cost_b;
                   });
  std::vector<Column> columns;
  for (const proto::Objective& objective : objectives) {
    columns.emplace_back(objective.metric(), Align::kRight);
  }
  columns.emplace_back("runs", Align::kRight);
  columns.emplace_back("config", Align::kLeft, "", Clip::kFold);
  Table table(std::move(columns));
  const size_t shown = front ? rows.size() : std::min(rows.size(), kShown);
  for (size_t i = 0; i < shown; ++i) {
    std::vector<Cell> cells;
    for (const absl::optional<double>& value : rows[i].values) {
      cells.push_back(
          value ? Cell::Number(*value, absl::StrFormat("%.6g", *value))
                : Cell::None());
    }
    cells.push_back(Cell::Integer(rows[i].readings));
    cells.push_back(CanonicalText(session.trials(rows[i].trial).config()));
    table.AddRow(std::move(cells));
  }
  out << table.Format(options_.format, TerminalWidth());
  if (shown < rows.size()) {
    log << shown << " of " << rows.size()
        << " configs that worked; `optrail show` has all\n";
  }
  PrintProof(session, log);
  if (options_.format == OutputFormat::kTable && session.has_winner()) {
    out << "\nbest: " << evaluator_->command().Fill(KnobTexts(session.winner()))
        << "\n";
  }
  return ToInt(code);
}

}  // namespace optrail::tuning
