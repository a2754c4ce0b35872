#ifndef OPTRAIL_TUNING_SESSION_SESSION_H_
#define OPTRAIL_TUNING_SESSION_SESSION_H_

// Session tunes one task: a proposer asks for configs, an evaluator tries them,
// each trial is in a journal before it counts; the best few are ranked by
// readings of their own, and the first of them becomes the winner only if it is
// proven to be better than the default config in rounds that had no part in the
// choice (proof.h). Where the header has an incumbent, that stays unless
// another is proven better than it by a margin. It knows nothing of kernels,
// commands or recordings.
//
//   OPTRAIL_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
//                            Session::Open(setup, evaluator, clock));
//   while (!session->search_ended()) {
//     OPTRAIL_RETURN_IF_ERROR(session->Advance());
//   }
//   OPTRAIL_ASSIGN_OR_RETURN(const proto::Session record, session->Finish());
//
// A session that was killed resumes when it is opened again with the same
// header: at most the requests in flight are repeated.
// docs/method/tuning_sessions.md.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "base/clock.h"
#include "tuning/proto/session.pb.h"
#include "tuning/proto/trial.pb.h"
#include "tuning/search/stop_rule.h"
#include "tuning/session/evaluator.h"
#include "tuning/session/metering.h"
#include "tuning/session/proof.h"
#include "tuning/session/proposer.h"
#include "tuning/session/session_journal.h"

namespace optrail::tuning {

class SequentialHalving;

struct TuneProgress {
  int64_t trials = 0;
  int64_t trial_limit = 0;  // 0: none
  int64_t elapsed_ns = 0;
  int64_t time_limit_ns = 0;          // 0: none
  absl::optional<double> best_value;  // of the first objective
  std::string phase;                  // "search", "rank 3", "prove round 7"
  // Of the whole session, verification included, 0 to 1: a guess, since a proof
  // ends when it has decided. And how much of it was there from the journal.
  double share = 0;
  double earlier_share = 0;
};

// What commands that tune say when they are interrupted (InterruptNote).
inline constexpr char kInterruptedTuning[] =
    "interrupted: the same command goes on with the trials made so far";

// Said where ranking_cut() is true.
inline constexpr char kRankingCut[] =
    "the time budget ended the ranking of the best configs early; a larger one "
    "finds the best of them more surely";

// A reading that was disturbed is repeated, this often in all.
inline constexpr int kReadingAttempts = 3;

// A session whose evaluator loses so many requests in a row gives up, and can
// be resumed.
inline constexpr int kMaxLost = 5;

// Where readings vary, so many times as many configs are ranked at most.
inline constexpr int kMostFinalists = 4;

struct SessionSetup {
  // Everything that is known before the first trial: the task, hardware, space,
  // strategy, seed, budget, objectives (none: time), incumbent (may be absent).
  proto::Session header;
  proto::Config default_config;
  // Trials of this very task from earlier sessions, stored with the session as
  // they are. A session that resumes starts from those that its first sitting
  // was given.
  std::vector<proto::Trial> known;
  // The proposer of the session as it began. Required.
  std::function<absl::StatusOr<std::unique_ptr<Proposer>>(
      const proto::Session& begun, int batch)>
      propose;

  // How many of the best are ranked, and by how many readings each on average;
  // up to kMostFinalists times as many where these cannot be told apart by so
  // few, within a quarter of the time that their proof may take.
  int finalists = 4;
  int rank_rounds = 8;
  ProofOptions proof;
  // Part of the incumbent's cost by which another config has to be better, and
  // by which the default has to be.
  double incumbent_margin = .01;
  // Only configs of the default's numerics class may win (numerics.h): what has
  // other bits, or bits that nobody knows, is no finalist. An incumbent is
  // taken to be of it, unless a trial says otherwise.
  bool class_of_default = false;
  // Only configs may win that are batch-invariant (numerics.h), the default
  // among them; without such a config there is no winner. An incumbent is taken
  // to be so, unless a trial says otherwise.
  bool batch_invariant = false;
  // A config this many times worse than the best is raced out; 0: none.
  double race_factor = 1.5;
  // The folder with the journals of unfinished sessions; created if missing.
  // Empty: a session that is interrupted is lost.
  std::string journal_directory;
  std::function<void(const TuneProgress&)> on_progress;  // may be empty
};

class Session {
 public:
  // Opens the journal of an interrupted session, or starts one. `evaluator` and
  // `clock` must outlive the session.
  //
  // Errors, here and below, are of the environment (a journal that is not
  // writable, an evaluator that refuses the task), never of a config.
  static absl::StatusOr<std::unique_ptr<Session>> Open(SessionSetup setup,
                                                       Evaluator& evaluator,
                                                       Clock& clock);
  // As above, with an evaluator that the session keeps.
  static absl::StatusOr<std::unique_ptr<Session>> Open(
      SessionSetup setup, std::unique_ptr<Evaluator> evaluator, Clock& clock);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // One turn: the next trial of the journal as long as there is one; else asks
  // for what the evaluator's offer has room for and waits for an answer.
  // Instead of it the search ends when the budget is spent or the space
  // exhausted. Must not be called once the search has ended.
  absl::Status Advance();

  // Submits what the evaluator's offer has room for and waits for no answer, so
  // that it is compiled while something else is measured. Optional; Advance()
  // goes on from there.
  absl::Status AskAhead();

  // proof.session_max_time ended the ranking early.
  bool ranking_cut() const { return ranking_cut_; }
  // Says what the session takes at least, once a trial has shown that this is
  // more than proof.session_max_time; "" otherwise.
  std::string ShortBudgetText() const;

  // The next config that the session asks for, if its proposer takes it
  // (proposer.h). A sitting that resumes gets the trials of an uninterrupted
  // one if it is given the same suggestions after the same trials.
  bool Suggest(const proto::Config& config) {
    return proposer_->Suggest(config);
  }

  void Overhear(int sibling, const proto::Trial& trial) {
    proposer_->Overhear(sibling, trial);
  }
  // All trials so far, those known before first.
  const google::protobuf::RepeatedPtrField<proto::Trial>& all_trials() const {
    return session_.trials();
  }

  // False: Advance() would wait for a compiler or a process, and somebody else
  // may have the device meanwhile.
  bool IsReady() const;
  // Something else was done since Advance(), which is none of this session's
  // time.
  void GoOn() { accounted_ns_ = 0; }

  // Whether the search has asked for all that it is going to.
  bool all_asked() const;

  bool search_ended() const {
    return session_.stop_reason() != proto::STOP_REASON_UNSPECIFIED &&
           in_flight_.empty();
  }

  // Ends the search, for `reason` unless it ended by itself, and journals which
  // configs are finalists: from there on no sitting searches any further.
  absl::Status EndSearch(proto::StopReason reason);

  // Ranks the finalists and proves the best. The session, closed, with stop
  // reason, finalists, proof and winner (absent if no config works, or several
  // objectives name none). The journal is kept until RemoveSessionJournal, so
  // that a crash between this call and storing the session loses nothing.
  absl::StatusOr<proto::Session> Finish();

  // Of the search so far, in all sittings; a resumed session reads the same
  // after the same trials. Trials known before are not counted.
  int64_t trials() const { return progress_.trials; }
  int64_t elapsed_ns() const { return session_.elapsed_ns(); }
  // The improvement that the strategy expected of the last trial.
  absl::optional<double> expected_improvement() const {
    return progress_.expected_improvement;
  }
  // To be minimised; nullopt: nothing worked yet.
  absl::optional<double> best_cost() const { return progress_.best_cost; }
  absl::optional<double> best_value() const { return best_value_; }
  // The config of best_cost(), which may have been known before.
  const absl::optional<proto::Config>& best_config() const {
    return best_config_;
  }
  // The header with which the first sitting began.
  const proto::Session& header() const { return journal_->header(); }
  const std::vector<proto::Objective>& objectives() const {
    return objectives_;
  }

 private:
  using Reading = proto::TuneJournalRecord::Reading;
  struct InFlight {
    proto::Config config;
    int64_t thinking_ns = 0;
    absl::optional<double> expected_improvement;
    int64_t started_unix_ns = 0;
    bool submitted = false;
  };
  enum class Proven { kDecided, kCandidateFailed, kBaseFailed };

  Session(SessionSetup setup, Evaluator& evaluator, Clock& clock);

  // session.cc: the search, replayed from the journal as far as that goes.
  absl::Status Start();
  bool HasJournaledSteps() const;
  // The asks up to the journal's next trial, and that.
  absl::Status ReplayTrial();
  // True before the first trial of a session that depends on the class of the
  // default, which nothing knows yet: the default is that trial.
  bool AsksDefault() const;
  absl::Status AskNext();
  // Asks until the budget is spent or the evaluator has enough.
  absl::Status AskWhatFits();
  void Submit(int64_t ticket);
  absl::Status Take(Evaluation answer);
  absl::Status Account(const JournaledTrial& trial);
  void TakeBest(const proto::Trial& trial);
  absl::Status NoteLost(const proto::Trial& lost);
  // Keeps which nodes went away.
  absl::Status KeepLostNodes();
  void Report(const std::string& phase) const;

  // session_time.cc: what the session has spent, and what is left for the rest.
  // The time that counts towards the budget. A session with a
  // proof.session_max_time also pays for opening processes, so that it takes
  // that long on a clock.
  absl::Duration Spent() const;
  // How much of the session is done, 0 to 1 (TuneProgress).
  double Share() const;
  // After a search of that length.
  absl::Duration MostProofTime(absl::Duration search) const;
  // The rest of proof.session_max_time; infinite without one.
  absl::Duration TimeLeft() const;
  absl::Duration TimeBeforeProof() const;
  // The time of reading a finalist, judged by the trials; 0 before the first.
  absl::Duration ReadingTime() const;
  // The time of the fewest rounds of a proof.
  absl::Duration LeastProofTime() const;
  // The rest of proof.session_max_time is needed for the finalists.
  bool MustLeaveTheRest() const;

  // session_finalists.cc: which configs are measured again.
  absl::Status ChooseFinalists();
  void AddFinalists();
  // Returns true if its numerics class allows that.
  bool MayWin(const proto::Config& config) const;
  // With predictions in place of what was not metered (metering.h).
  std::vector<proto::Trial> CompletedTrials(double deviations) const;
  std::vector<proto::Config> BestByLimits(int count) const;
  // Those of a metered search: the best that it metered, and as many others,
  // by a lower bound of what is predicted, as readings are left.
  std::vector<proto::Config> MeteredFinalists() const;
  // The best config that was read, by one objective alone.
  absl::optional<proto::Config> BestIn(size_t objective) const;
  // The search's reading of each config that worked, by canonical text.
  absl::flat_hash_map<std::string, double> FirstReadings(
      absl::FunctionRef<absl::optional<double>(const proto::Trial&)> value)
      const;

  // session_reading.cc: readings of finalists, all on one node.
  // Makes the evaluator prove on the node where an earlier sitting read
  // finalists, and returns what names it; empty if none did.
  absl::StatusOr<proto::Conditions> GoOnProving();
  // Refuses a reading of another host or device than those before it.
  absl::Status CheckProver(const Reading& reading);
  absl::Status NeedsProver(const proto::Conditions& prover,
                           absl::string_view why) const;
  absl::StatusOr<Reading> Read(bool of_proof, int round, int finalist);
  // Those that Read() is going to be called for, in this order, where the
  // evaluator begins ahead.
  void ExpectReadings(bool of_proof, int round,
                      const std::vector<int>& finalists);
  // The request's ticket.
  int64_t SubmitReading(bool of_proof, int round, int finalist, int of_round);
  void AccountReading(const Reading& reading);
  static void AddEffort(const proto::Effort& one, proto::Effort* all);
  // The cost of a reading; nullopt if it has none. A failure disqualifies.
  absl::optional<double> CostOfReading(const Reading& reading);
  bool Disqualified(int finalist) const { return disqualified_[finalist]; }
  // Medians over processes; whether they are within the limits.
  bool SetVerified(
      int finalist,
      const google::protobuf::RepeatedPtrField<proto::Measurement>& readings);

  // session_winner.cc: the ranking of the finalists, and the proof.
  absl::Status DeclareWinner();
  absl::StatusOr<std::vector<int>> Rank();
  // The order in which a ranking prefers equals: the incumbent, then what
  // differs from the default in fewest knobs, then the first by text.
  void SortByPreference(std::vector<int>* finalists) const;
  // Reads `candidates` until `ranking`, which is of these, is done.
  absl::Status ReadAll(const std::vector<int>& candidates, int first_round,
                       SequentialHalving& ranking);
  // Where readings vary more than `ranking` tells apart, the best of the search
  // may be any of more configs: these are read again, and more often, from
  // nothing, and *order is then theirs.
  absl::Status RankMore(const std::vector<int>& all,
                        const SequentialHalving& ranking, absl::Duration took,
                        std::vector<int>* order);
  // Those of `candidates` that one reading, the search's, does not rule out.
  std::vector<int> InDoubt(const std::vector<int>& candidates) const;
  // Limits that depend on the best value, from verified values.
  void VerifyLimits();
  PairedProof NewProof(int base) const;
  // Reads both in paired rounds until `paired` knows enough.
  absl::StatusOr<Proven> Compare(int candidate, int base, PairedProof* paired,
                                 proto::Proof* proof);
  // Against the default.
  absl::StatusOr<Proven> Prove(int candidate);
  // Enough readings of one that has nothing to be compared with.
  absl::StatusOr<bool> VerifyAlone(int finalist);
  // Puts the incumbent first unless the first of *order is proven better.
  absl::Status DefendIncumbent(std::vector<int>* order);
  // Where `candidate` beat the incumbent and did not beat the default, the
  // default replaces the incumbent only if it is proven better than that.
  absl::Status DefendAgainstDefault(int candidate);

  const SessionSetup setup_;
  std::unique_ptr<Evaluator> owned_evaluator_;  // may be null
  Evaluator& evaluator_;
  Clock& clock_;
  std::vector<proto::Objective> objectives_;
  StopRule stop_;

  std::unique_ptr<SessionJournal> journal_;
  size_t replayed_ = 0;  // steps
  std::unique_ptr<Proposer> proposer_;
  proto::Session session_;
  int window_ = 1;
  bool begins_ahead_ = false;

  int64_t last_ticket_ = 0;
  std::map<int64_t, InFlight> in_flight_;
  int lost_in_a_row_ = 0;
  int64_t accounted_ns_ = 0;  // the clock, when several are in flight

  Metering metering_{{}, 0};
  SessionProgress progress_;
  absl::optional<double> improved_to_;
  double earlier_share_ = 0;
  absl::optional<double> best_value_;
  absl::optional<proto::Config> best_config_;

  std::map<std::tuple<bool, int, int>, Reading> journaled_readings_;
  // Tickets of readings that were asked for, and the answers of others that
  // came while one was waited for.
  std::map<std::tuple<bool, int, int>, int64_t> expected_readings_;
  std::map<int64_t, Evaluation> answers_;
  std::vector<bool> disqualified_, read_;  // of the finalists
  proto::Conditions prover_;               // of the first reading; may be empty
  int incumbent_ = -1;                     // among the finalists
  int proof_round_ = 0;
  bool ranking_cut_ = false;
};

// Opens, searches within the session's own budget, and finishes.
absl::StatusOr<proto::Session> RunSession(const SessionSetup& setup,
                                          Evaluator& evaluator, Clock& clock);

// Returns whether an earlier sitting of this very session left its journal.
bool HasSessionJournal(const SessionSetup& setup);
absl::Status RemoveSessionJournal(const SessionSetup& setup);

// The stop rule of a budget.
StopRule StopRuleOf(const proto::Budget& budget,
                    const std::vector<proto::Objective>& objectives);

}  // namespace optrail::tuning

#endif  // OPTRAIL_TUNING_SESSION_SESSION_H_
