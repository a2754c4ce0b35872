// The time that a session has spent, and what its budget leaves for the rest.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/text/units.h"
#include "tuning/session/session.h"

namespace optrail::tuning {
namespace {

// A proof may take as long as the search took, or the least.
constexpr absl::Duration kLeastProofTime = absl::Seconds(3);
constexpr absl::Duration kMostProofTime = absl::Minutes(1);

}  // namespace

absl::Duration Session::Spent() const {
  const absl::Duration elapsed = absl::Nanoseconds(session_.elapsed_ns());
  if (!setup_.proof.session_max_time.has_value()) return elapsed;
  return elapsed + absl::Nanoseconds(session_.time().effort().open_ns());
}

double Session::Share() const {
  // Ranking takes half as long as the proof, about.
  constexpr double kVerification = 1.5;
  // A proof that is decided late still has something to do.
  constexpr double kMost = .99;
  const proto::Budget& budget = session_.budget();
  absl::Duration search = progress_.elapsed;
  if (!search_ended()) {
    search = absl::InfiniteDuration();
    if (budget.time_ns() > 0) search = absl::Nanoseconds(budget.time_ns());
    if (budget.trials() > 0 && progress_.trials > 0) {
      search = std::min(search, progress_.elapsed *
                                    static_cast<double>(budget.trials()) /
                                    static_cast<double>(progress_.trials));
    }
  }
  const absl::Duration whole = search + kVerification * MostProofTime(search);
  return whole > absl::ZeroDuration()
             ? std::min(kMost, absl::FDivDuration(Spent(), whole))
             : 0;
}

absl::Duration Session::MostProofTime(absl::Duration search) const {
  return setup_.proof.max_time.value_or(
      std::min(kMostProofTime, std::max(kLeastProofTime, search)));
}

absl::Duration Session::TimeLeft() const {
  return setup_.proof.session_max_time.value_or(absl::InfiniteDuration()) -
         Spent();
}

absl::Duration Session::TimeBeforeProof() const {
  return TimeLeft() -
         std::max(MostProofTime(progress_.elapsed), LeastProofTime());
}

absl::Duration Session::ReadingTime() const {
  // The newest are as long as those to come. A process stays open for many
  // trials, and each reading of a finalist opens one, as the first trial did.
  constexpr int kNewest = 16;
  const int first = session_.warm_start_trial_count();
  const int end = session_.trials_size();
  int64_t elapsed_ns = 0, open_ns = 0;
  int count = 0;
  for (int i = end - 1; i >= first && count < kNewest; --i) {
    const proto::Trial& trial = session_.trials(i);
    open_ns = std::max(open_ns, trial.effort().open_ns());
    if (trial.outcome() != proto::OK) continue;
    elapsed_ns += trial.elapsed_ns();
    ++count;
  }
  if (count == 0) return absl::ZeroDuration();
  open_ns = std::max(open_ns, session_.trials(first).effort().open_ns());
  return absl::Nanoseconds(elapsed_ns / count + open_ns);
}

absl::Duration Session::LeastProofTime() const {
  return 2 * setup_.proof.min_rounds * ReadingTime();
}

bool Session::MustLeaveTheRest() const {
  // The default and one other config, and this share of the time: less is no
  // search. What a reading takes is a guess, too: the first process may have
  // been slow to open.
  constexpr int kLeastTrials = 2;
  constexpr double kLeastShare = .25;
  const auto in_flight = static_cast<int>(in_flight_.size());
  if (!setup_.proof.session_max_time.has_value() ||
      progress_.trials + in_flight < kLeastTrials ||
      Spent() < kLeastShare * *setup_.proof.session_max_time) {
    return false;
  }
  return TimeBeforeProof() < (in_flight + 1 + setup_.finalists) * ReadingTime();
}

std::string Session::ShortBudgetText() const {
  const absl::Duration whole =
      setup_.proof.session_max_time.value_or(absl::InfiniteDuration());
  const absl::Duration reading = ReadingTime();
  // Two trials and a proof are the least.
  const absl::Duration least = 2 * reading + LeastProofTime();
  if (least <= whole) return "";
  const auto text = [](absl::Duration duration) {
    return FormatDurationNs(absl::ToDoubleNanoseconds(duration));
  };
  return absl::StrCat("one measurement takes ", text(reading),
                      ", and a proof at least ", 2 * setup_.proof.min_rounds,
                      " of them: this takes about ", text(least), ", not the ",
                      text(whole),
                      " of the time budget, and tries few configs; next: a "
                      "larger budget");
}

}  // namespace optrail::tuning
