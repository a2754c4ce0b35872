// Searches for the best config of one task after another.

#include <algorithm>
#include <iostream>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file/retry_while_held.h"
#include "base/status_macros.h"
#include "suites/tune/objectives.h"
#include "suites/tune/task_store.h"
#include "suites/tune/tune_call.h"

namespace optrail::suites {

void TuneCall::AskAhead(size_t i) {
  if (i >= pending_.size() || !options_.elsewhere.empty()) return;
  Pending& pending = pending_[i];
  // Elsewhere, whoever is opened or compiles disturbs what is measured.
  if (pending.session != nullptr ||
      pending.evaluator->policy().processes_ahead == 0) {
    return;
  }
  // What goes wrong is said when its turn comes.
  if (!OpenSession(pending).ok() || !pending.session->AskAhead().ok()) {
    pending.session.reset();
  }
}

bool TuneCall::AdvanceNext(size_t i) {
  if (i + 1 >= pending_.size()) return false;
  tuning::Session* const next = pending_[i + 1].session.get();
  if (next == nullptr || next->search_ended() || !next->IsReady()) return false;
  next->GoOn();
  // What goes wrong is said when its turn comes: it goes wrong again.
  return next->Advance().ok();
}

// Another command may tune the same task. What it finds answers this one, too,
// if nothing else is asked for.
absl::Status TuneCall::OpenWhenFree(Pending& pending) {
  return RetryWhileHeld(
      [&](bool waited) -> absl::Status {
        if (waited || pending.is_new) {
          OPTRAIL_RETURN_IF_ERROR(CheckIsNotTuned(pending));
        }
        return OpenSession(pending);
      },
      [&](const std::string& why) {
        std::cerr << "\nnote: " << ShortTaskText(pending.task->task)
                  << " waits: " << why << "\n";
      });
}

// Cancelled, and the task is skipped, if another command has tuned it since
// this one began.
absl::Status TuneCall::CheckIsNotTuned(Pending& pending) {
  if (options_.retune || HasTuneJournal(pending.setup, pending.tune)) {
    return absl::OkStatus();
  }
  OPTRAIL_ASSIGN_OR_RETURN(const tuning::TunedConfigStore store,
                           LoadStore(context_, {*pending.task}));
  if (FindTuned(store, *pending.task, ObjectiveKey(options_.tune.objectives),
                pending.space) == nullptr) {
    return absl::OkStatus();
  }
  summaries_[pending.summary].skipped = true;
  return absl::CancelledError("tuned by another command meanwhile");
}

absl::StatusOr<proto::Session> TuneCall::SearchAlone(size_t i) {
  turn_ = i;
  Pending& pending = pending_[i];
  if (pending.session == nullptr) {
    OPTRAIL_RETURN_IF_ERROR(OpenWhenFree(pending));
  }
  pending.session->GoOn();
  while (!pending.session->search_ended()) {
    // While all that is left of this search compiles, the next one measures.
    if (!pending.session->IsReady() && AdvanceNext(i)) {
      pending.session->GoOn();
      continue;
    }
    OPTRAIL_RETURN_IF_ERROR(pending.session->Advance());
    if (pending.session->all_asked()) AskAhead(i + 1);
  }
  return pending.session->Finish();
}

void TuneCall::OrderPending() {
  std::vector<size_t> all(pending_.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<Pending> ordered;
  for (const Start& start : StartsOf(all, Clock::Real()->WallNs())) {
    ordered.push_back(std::move(pending_[start.task]));
  }
  pending_ = std::move(ordered);
}

absl::Status TuneCall::OneByOne() {
  constexpr int64_t kPerTask = 10'000;
  Progress progress("tuning", kPerTask * static_cast<int64_t>(pending_.size()),
                    ForProgress(/*counts=*/false));
  std::vector<double> shares(pending_.size());  // of each task that is done
  std::vector<double> earlier(pending_.size());
  const auto units = [&](const std::vector<double>& of_tasks) {
    return static_cast<int64_t>(
        kPerTask * std::accumulate(of_tasks.begin(), of_tasks.end(), 0.0));
  };
  OrderPending();
  bool is_told = false;  // that the budget is short
  for (size_t i = 0; i < pending_.size(); ++i) {
    pending_[i].tune.finalists_ahead = [this, i] { return turn_ == i; };
    pending_[i].tune.on_progress = [&, i](const tuning::TuneProgress& now) {
      if (!is_told && pending_[i].session != nullptr) {
        const std::string text = pending_[i].session->ShortBudgetText();
        if (!text.empty()) {
          progress.Clear();
          std::cerr << "note: " << ShortTaskText(pending_[i].task->task) << ": "
                    << text << "\n";
          is_told = true;
        }
      }
      shares[i] = now.share;
      earlier[i] = now.earlier_share;
      progress.SetEarlier(units(earlier));
      progress.Update(
          units(shares),
          absl::StrCat(Title(i), ProgressDetail(now, pending_[i].tune)));
    };
  }
  for (size_t i = 0; i < pending_.size(); ++i) {
    Pending& pending = pending_[i];
    progress.Update(units(shares), Title(i));
    absl::StatusOr<proto::Session> searched = SearchAlone(i);
    progress.Clear();  // for notes
    OPTRAIL_RETURN_IF_ERROR(Record(pending, std::move(searched)));
    shares[i] = 1;
    pending.session.reset();
    pending.evaluator->Rest();
    if (pending.recorded) {
      OPTRAIL_RETURN_IF_ERROR(RemoveTuneJournal(pending.setup, pending.tune));
    }
    if (options_.retune && pending.was_recorded) {
      // Another call had finished it and was killed before its journal went.
      OPTRAIL_RETURN_IF_ERROR(Record(pending, SearchAlone(i)));
      pending.session.reset();
      pending.evaluator->Rest();
      OPTRAIL_RETURN_IF_ERROR(RemoveTuneJournal(pending.setup, pending.tune));
    }
  }
  progress.Update(progress.total());
  progress.Finish();
  return absl::OkStatus();
}

}  // namespace optrail::suites
