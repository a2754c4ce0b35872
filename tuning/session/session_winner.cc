// Ranks the finalists of a session and proves the best of them.

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "tuning/proto/canonical.h"
#include "tuning/session/objective.h"
#include "tuning/session/ranking.h"
#include "tuning/session/session.h"

namespace optrail::tuning {
namespace {

// A busy machine makes a reading twice too slow now and then, and the least of
// many is a lucky one: what took this many times as long is not read again.
constexpr double kHopeless = 4;

// Rounds of a proof that give nothing are repeated so often beyond those that
// give something.
constexpr int kMaxEmptyRounds = 10;

}  // namespace

absl::Status Session::ReadAll(const std::vector<int>& candidates,
                              int first_round, SequentialHalving& ranking) {
  while (!ranking.done()) {
    if (ranking.rounds() > 0 && TimeBeforeProof() <= absl::ZeroDuration()) {
      ranking.Stop();
      ranking_cut_ = true;
      break;
    }
    const int round = first_round + ranking.rounds();
    Report(absl::StrCat("rank ", round + 1));
    std::map<int, double> costs;
    std::vector<int> finalists;
    for (const int i : ranking.NextRound()) finalists.push_back(candidates[i]);
    ExpectReadings(/*of_proof=*/false, round, finalists);
    for (const int i : ranking.NextRound()) {
      OPTRAIL_ASSIGN_OR_RETURN(const Reading reading,
                               Read(/*of_proof=*/false, round, candidates[i]));
      if (const auto cost = CostOfReading(reading)) {
        costs[i] = *cost;
        *session_.mutable_finalists(candidates[i])->add_measurements() =
            reading.measurement();
      }
    }
    ranking.AddRound(costs);
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (Disqualified(candidates[i])) ranking.Disqualify(static_cast<int>(i));
    }
  }
  return absl::OkStatus();
}

std::vector<int> Session::InDoubt(const std::vector<int>& candidates) const {
  const auto first_costs = FirstReadings([this](const proto::Trial& trial) {
    return Cost(objectives_, ValuesOf(objectives_, trial));
  });
  const auto first_cost = [&](int candidate) {
    const auto found =
        first_costs.find(CanonicalText(session_.finalists(candidate).config()));
    return found == first_costs.end() ? std::numeric_limits<double>::infinity()
                                      : found->second;
  };
  double least = std::numeric_limits<double>::infinity();
  for (const int candidate : candidates) {
    least = std::min(least, first_cost(candidate));
  }
  std::vector<int> in_doubt;
  for (const int candidate : candidates) {
    if (!Disqualified(candidate) &&
        (candidate == incumbent_ ||
         first_cost(candidate) <= least * kHopeless)) {
      in_doubt.push_back(candidate);
    }
  }
  return in_doubt;
}

void Session::VerifyLimits() {
  std::vector<proto::Objective> verified = objectives_;
  for (proto::Objective& objective : verified) {
    if (objective.has_limit_over_best()) objective.clear_limit();
  }
  for (const proto::Finalist& finalist : session_.finalists()) {
    if (finalist.outcome() != proto::OK) continue;
    TightenLimits(ValuesOf(verified, finalist), verified);
  }
  for (size_t i = 0; i < verified.size(); ++i) {
    if (verified[i].has_limit()) objectives_[i] = verified[i];
  }
}

void Session::SortByPreference(std::vector<int>* finalists) const {
  using Preference = std::tuple<bool, int64_t, std::string>;
  const std::string default_text = CanonicalText(setup_.default_config);
  const absl::flat_hash_set<absl::string_view> default_parts =
      absl::StrSplit(default_text, ',');
  std::vector<std::pair<Preference, int>> sorted;
  for (const int i : *finalists) {
    const std::string text = CanonicalText(session_.finalists(i).config());
    const int64_t changed = absl::c_count_if(
        absl::StrSplit(text, ','),
        [&](absl::string_view part) { return !default_parts.contains(part); });
    sorted.push_back({{i != incumbent_, changed, text}, i});
  }
  absl::c_sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i) (*finalists)[i] = sorted[i].second;
}

absl::StatusOr<std::vector<int>> Session::Rank() {
  std::vector<int> all;
  for (int i = 0; i < session_.finalists_size(); ++i) {
    if (!session_.finalists(i).is_default()) all.push_back(i);
  }
  std::vector<int> few = all;
  // The incumbent is there beside the best of the search. Finalists of a
  // metered search were chosen to be read, each of them; they share the
  // readings of fewer.
  const int usual = setup_.finalists + (incumbent_ > 0 ? 1 : 0);
  int most = metering_.active() ? static_cast<int>(few.size()) : usual;
  // A round of more would take the time of the proof.
  if (const absl::Duration reading = ReadingTime();
      setup_.proof.session_max_time.has_value() &&
      reading > absl::ZeroDuration()) {
    const double affordable = absl::FDivDuration(TimeBeforeProof(), reading);
    const int least = incumbent_ > 0 ? 2 : 1;
    if (affordable < most && most > least) {
      most = std::max(least, static_cast<int>(affordable));
      ranking_cut_ = true;
    }
  }
  few.resize(std::min<size_t>(few.size(), most));
  SortByPreference(&few);
  const absl::Duration spent_before = Spent();
  SequentialHalving ranking(
      static_cast<int>(few.size()),
      std::min<int>(few.size(), usual) * setup_.rank_rounds);
  OPTRAIL_RETURN_IF_ERROR(ReadAll(few, /*first_round=*/0, ranking));
  std::vector<int> order;
  for (const int i : ranking.Order()) order.push_back(few[i]);
  OPTRAIL_RETURN_IF_ERROR(
      RankMore(all, ranking, Spent() - spent_before, &order));
  for (const int finalist : all) {
    const proto::Finalist& read = session_.finalists(finalist);
    if (Disqualified(finalist) || read.measurements().empty()) continue;
    const auto measurements = read.measurements();
    SetVerified(finalist, measurements);
  }
  VerifyLimits();
  order.erase(
      std::remove_if(order.begin(), order.end(),
                     [this](int i) {
                       return !WithinLimits(
                           objectives_,
                           ValuesOf(objectives_, session_.finalists(i)));
                     }),
      order.end());
  return order;
}

absl::Status Session::RankMore(const std::vector<int>& all,
                               const SequentialHalving& ranking,
                               absl::Duration took, std::vector<int>* order) {
  const int wanted = ReadingsWanted(ranking.Spread());
  if (wanted < 2 * setup_.rank_rounds || ranking.rounds() == 0) {
    return absl::OkStatus();
  }
  std::vector<int> many = InDoubt(all);
  const int readings_so_far = ranking.readings();
  const double per_reading_ns =
      std::max(1., absl::ToDoubleNanoseconds(took)) / readings_so_far;
  const double affordable =
      absl::ToDoubleNanoseconds(
          std::min(MostProofTime(progress_.elapsed) / 4, TimeBeforeProof())) /
      per_reading_ns;
  if (affordable < readings_so_far) return absl::OkStatus();
  const int readings = static_cast<int>(
      std::min(affordable, static_cast<double>(many.size()) * wanted));
  many.resize(std::min<size_t>(many.size(), readings / setup_.rank_rounds));
  if (many.size() < 2 || readings < 2 * readings_so_far) {
    return absl::OkStatus();
  }
  SortByPreference(&many);
  SequentialHalving wider(static_cast<int>(many.size()), readings);
  OPTRAIL_RETURN_IF_ERROR(ReadAll(many, ranking.rounds(), wider));
  std::vector<int> wider_order;
  for (const int i : wider.Order()) wider_order.push_back(many[i]);
  // Those that were in no doubt come last.
  for (const int i : *order) {
    if (!absl::c_linear_search(many, i) && !Disqualified(i)) {
      wider_order.push_back(i);
    }
  }
  *order = std::move(wider_order);
  return absl::OkStatus();
}

PairedProof Session::NewProof(int base) const {
  ProofOptions options = setup_.proof;
  options.max_time = std::min(MostProofTime(progress_.elapsed),
                              std::max(absl::ZeroDuration(), TimeLeft()));
  if (base == incumbent_) options.margin = setup_.incumbent_margin;
  return PairedProof(options, objectives_);
}

absl::StatusOr<Session::Proven> Session::Compare(int candidate, int base,
                                                 PairedProof* paired,
                                                 proto::Proof* proof) {
  *proof->mutable_candidate() = session_.finalists(candidate).config();
  const absl::Duration spent_before = Spent();
  int empty_rounds = 0;
  while (paired->Open(Spent() - spent_before) &&
         empty_rounds <= paired->rounds() + kMaxEmptyRounds) {
    Report(absl::StrCat("prove round ", paired->rounds() + 1));
    const int round = proof_round_++;
    // In turns, so that neither side always runs first.
    const bool base_first = round % 2 == 0;
    Reading first, second;
    ExpectReadings(/*of_proof=*/true, round,
                   base_first ? std::vector<int>{base, candidate}
                              : std::vector<int>{candidate, base});
    OPTRAIL_ASSIGN_OR_RETURN(
        first, Read(/*of_proof=*/true, round, base_first ? base : candidate));
    OPTRAIL_ASSIGN_OR_RETURN(
        second, Read(/*of_proof=*/true, round, base_first ? candidate : base));
    if (!base_first) std::swap(first, second);
    const absl::optional<double> base_cost = CostOfReading(first);
    const absl::optional<double> cost = CostOfReading(second);
    if (Disqualified(candidate)) return Proven::kCandidateFailed;
    if (cost) *proof->add_candidate_measurements() = second.measurement();
    if (Disqualified(base)) {
      *session_.mutable_finalists(candidate)->add_measurements() =
          second.measurement();
      return Proven::kBaseFailed;
    }
    if (!cost || !base_cost) {
      if (cost) proof->mutable_candidate_measurements()->RemoveLast();
      ++empty_rounds;
      continue;
    }
    *proof->add_default_measurements() = first.measurement();
    paired->Add(*cost, *base_cost);
  }
  paired->Fill(proof);
  return Proven::kDecided;
}

absl::StatusOr<Session::Proven> Session::Prove(int candidate) {
  constexpr int kDefault = 0;  // the first finalist
  PairedProof paired = NewProof(kDefault);
  proto::Proof proof;
  OPTRAIL_ASSIGN_OR_RETURN(const Proven proven,
                           Compare(candidate, kDefault, &paired, &proof));
  if (proven != Proven::kDecided) return proven;
  *session_.mutable_proof() = proof;
  if (paired.rounds() < setup_.proof.min_rounds) {
    session_.mutable_finalists(kDefault)->set_outcome(proto::CONTENDED);
    session_.mutable_finalists(candidate)->set_outcome(proto::CONTENDED);
    return Proven::kDecided;
  }
  if (!SetVerified(candidate, proof.candidate_measurements())) {
    disqualified_[candidate] = true;
    return Proven::kCandidateFailed;
  }
  // Beyond a limit the default is no result, however the two compare.
  const bool default_counts =
      SetVerified(kDefault, proof.default_measurements()) &&
      (!setup_.batch_invariant || MayWin(setup_.default_config));
  const bool stays = candidate == incumbent_
                         ? !paired.LostBy(setup_.incumbent_margin)
                         : paired.Claimed();
  *session_.mutable_winner() =
      session_.finalists(stays || !default_counts ? candidate : kDefault)
          .config();
  return Proven::kDecided;
}

absl::StatusOr<bool> Session::VerifyAlone(int finalist) {
  // Rounds of the ranking have other numbers.
  constexpr int kFirstRound = 1000;
  const int wanted = setup_.rank_rounds;
  proto::Finalist& alone = *session_.mutable_finalists(finalist);
  int round = 0;
  for (; round < 2 * wanted && alone.measurements_size() < wanted; ++round) {
    if (round > 0 && TimeLeft() <= absl::ZeroDuration()) break;
    Report(absl::StrCat("verify ", round + 1));
    OPTRAIL_ASSIGN_OR_RETURN(
        const Reading reading,
        Read(/*of_proof=*/false, kFirstRound + round, finalist));
    if (CostOfReading(reading)) {
      *alone.add_measurements() = reading.measurement();
    }
    if (Disqualified(finalist)) return false;
  }
  if (2 * alone.measurements_size() < std::min(wanted, round)) {
    alone.set_outcome(proto::CONTENDED);
    return false;
  }
  const auto measurements = alone.measurements();
  return SetVerified(finalist, measurements);
}

absl::Status Session::DefendIncumbent(std::vector<int>* order) {
  const auto incumbent = [&] { return absl::c_find(*order, incumbent_); };
  // The default defends itself in the proof of the first.
  while (incumbent() != order->end() && incumbent() != order->begin()) {
    PairedProof paired = NewProof(incumbent_);
    proto::Proof proof;
    OPTRAIL_ASSIGN_OR_RETURN(
        const Proven proven,
        Compare(order->front(), incumbent_, &paired, &proof));
    if (proven == Proven::kCandidateFailed) {
      order->erase(order->begin());
      continue;
    }
    if (proven == Proven::kBaseFailed) {
      order->erase(incumbent());
      return absl::OkStatus();
    }
    *session_.mutable_incumbent_proof() = proof;
    if (!paired.Claimed()) {
      std::rotate(order->begin(), incumbent(), incumbent() + 1);
    }
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status Session::DefendAgainstDefault(int candidate) {
  if (incumbent_ <= 0 || candidate == incumbent_ || Disqualified(incumbent_) ||
      CanonicalText(session_.winner()) !=
          CanonicalText(setup_.default_config)) {
    return absl::OkStatus();
  }
  const proto::Proof proof = session_.proof();
  OPTRAIL_ASSIGN_OR_RETURN(const Proven proven, Prove(incumbent_));
  if (proven == Proven::kDecided) return absl::OkStatus();
  *session_.mutable_proof() = proof;
  *session_.mutable_winner() = setup_.default_config;
  return absl::OkStatus();
}

absl::Status Session::DeclareWinner() {
  OPTRAIL_ASSIGN_OR_RETURN(std::vector<int> order, Rank());
  bool default_failed = false;
  while (true) {
    // Each time: what comes after one that failed has met no incumbent yet.
    OPTRAIL_RETURN_IF_ERROR(DefendIncumbent(&order));
    if (order.empty()) break;
    const int candidate = order.front();
    order.erase(order.begin());
    Proven proven = Proven::kBaseFailed;
    if (!default_failed) {
      OPTRAIL_ASSIGN_OR_RETURN(proven, Prove(candidate));
    }
    if (proven == Proven::kDecided) return DefendAgainstDefault(candidate);
    session_.clear_proof();
    if (proven == Proven::kCandidateFailed) continue;
    // There is nothing to be better than.
    default_failed = true;
    OPTRAIL_ASSIGN_OR_RETURN(const bool works, VerifyAlone(candidate));
    if (!works) continue;
    *session_.mutable_winner() = session_.finalists(candidate).config();
    return absl::OkStatus();
  }
  if (!default_failed &&
      (!setup_.batch_invariant || MayWin(setup_.default_config))) {
    OPTRAIL_ASSIGN_OR_RETURN(const bool works, VerifyAlone(0));
    if (works) *session_.mutable_winner() = session_.finalists(0).config();
  }
  return absl::OkStatus();
}

}  // namespace optrail::tuning
