#include "tuning/session/evaluator_pool.h"

#include <poll.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace optrail::tuning {
namespace {

// Rounds of the ranking have other numbers.
constexpr int64_t kFirstRound = 1'000'000;
// How often nodes are polled that have no descriptor to wait for.
constexpr absl::Duration kLookAgain = absl::Milliseconds(2);
// A node that is silent for longer than this and so many times its longest
// silence so far is taken to be gone. Opening a process may take two minutes,
// and compiling a config one.
constexpr absl::Duration kPatience = absl::Minutes(5);
constexpr int64_t kPatienceOfLongest = 10;
constexpr absl::Duration kLookForSilence = absl::Seconds(1);

// Tickets of the session rise from 1.
int64_t CalibrationTicket(int round) { return -1 - round; }

}  // namespace

EvaluatorPool::EvaluatorPool(std::vector<Member> members,
                             proto::Config calibration, Clock& clock,
                             std::function<void(const std::string&)> say)
    : calibration_(std::move(calibration)),
      clock_(clock),
      say_(std::move(say)) {
  OPTRAIL_CHECK(!members.empty());
  for (Member& member : members) {
    nodes_.emplace_back();
    nodes_.back().member = std::move(member);
  }
}

void EvaluatorPool::Say(const std::string& what) const {
  if (say_) say_(what);
}

absl::Status EvaluatorPool::OpenAll(const proto::Task& task,
                                    NodeCalibration* calibration) {
  std::vector<int> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [this](int a, int b) {
    return nodes_[a].member.name < nodes_[b].member.name;
  });
  std::vector<proto::MeasuringNode> identities(nodes_.size());
  std::map<int, std::string> unreached;
  for (const int i : order) {
    Node& node = nodes_[i];
    absl::StatusOr<Offer> offer = node.member.evaluator->Open(task);
    if (offer.ok()) {
      node.offer = *std::move(offer);
      node.reached = true;
      if (!node.offer.nodes().empty()) identities[i] = node.offer.nodes(0);
    } else if (absl::IsUnavailable(offer.status())) {
      unreached[i] = std::string(offer.status().message());
    } else {
      return offer.status();
    }
    identities[i].set_name(node.member.name);
    const std::string& hardware = identities[i].hardware_id();
    if (!hardware.empty() && !task.hardware_id().empty() &&
        hardware != task.hardware_id()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the node ", node.member.name, " is of another hardware: ", hardware,
          ", expected ", task.hardware_id()));
    }
  }
  if (unreached.size() == nodes_.size()) {
    return absl::UnavailableError(unreached.begin()->second);
  }
  *calibration = NodeCalibration(std::move(identities));
  for (const auto& [i, why] : unreached) {
    calibration->LeaveOut(i, proto::NODE_UNREACHED, why);
  }
  return absl::OkStatus();
}

void EvaluatorPool::CalibrateOnce(int round, NodeCalibration* calibration) {
  std::vector<int> reading;
  const int64_t begun_ns = clock_.NowNs();
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    if (calibration->IsLeftOut(i)) continue;
    Request request;
    request.set_ticket(CalibrationTicket(round));
    *request.mutable_config() = calibration_;
    request.set_purpose(Request::RANK);
    request.set_round(kFirstRound + round);
    request.add_metrics("time");
    nodes_[i].member.evaluator->Submit(std::move(request));
    reading.push_back(i);
  }
  while (!reading.empty()) {
    std::vector<int> left;
    for (const int i : reading) {
      const std::vector<Evaluation> answers =
          nodes_[i].member.evaluator->Poll(absl::ZeroDuration());
      if (answers.empty()) {
        left.push_back(i);
      } else if (answers[0].lost()) {
        calibration->LeaveOut(i, proto::NODE_UNREACHED,
                              answers[0].trial().detail());
      } else {
        calibration->Add(i, answers[0].trial());
      }
    }
    if (clock_.NowNs() - begun_ns > absl::ToInt64Nanoseconds(kPatience)) {
      LeaveOutSilent(round, left, calibration);
      return;
    }
    if (left.size() == reading.size()) Await(left, kLookForSilence);
    reading = std::move(left);
  }
}

void EvaluatorPool::LeaveOutSilent(int round, const std::vector<int>& reading,
                                   NodeCalibration* calibration) {
  for (const int i : reading) {
    nodes_[i].reached = false;
    nodes_[i].member.evaluator->Cancel(CalibrationTicket(round));
    calibration->LeaveOut(i, proto::NODE_UNREACHED,
                          absl::StrCat("no answer to the default config in ",
                                       absl::FormatDuration(kPatience)));
  }
}

NodeComparison EvaluatorPool::Calibrate(NodeCalibration* calibration) {
  NodeComparison comparison = calibration->Compare();
  for (int round = 0; round < kMostCalibrations; ++round) {
    if (round >= kFewestCalibrations && !comparison.undecided) break;
    CalibrateOnce(round, calibration);
    comparison = calibration->Compare();
  }
  return comparison;
}

absl::StatusOr<Offer> EvaluatorPool::Open(const proto::Task& task) {
  NodeCalibration calibration({});
  OPTRAIL_RETURN_IF_ERROR(OpenAll(task, &calibration));
  NodeComparison comparison = Calibrate(&calibration);
  prover_ = comparison.reference;
  if (prover_ < 0) {
    if (std::none_of(nodes_.begin(), nodes_.end(),
                     [](const Node& node) { return node.reached; })) {
      return absl::UnavailableError(NodeText(comparison.nodes[0]));
    }
    // Nodes cannot be compared if none can read the default config.
    while (!nodes_[++prover_].reached) {
    }
    Say(absl::StrCat("no node could read the default config: only ",
                     nodes_[prover_].member.name, " measures"));
  }
  Offer offer = nodes_[prover_].offer;
  int compile_ahead = 0, measure_slots = 0, searching = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    proto::MeasuringNode& identity = comparison.nodes[i];
    const bool proves = static_cast<int>(i) == prover_;
    node.searches = proves || identity.verdict() == proto::NODE_EQUAL;
    identity.set_searches(node.searches);
    identity.set_proves(proves);
    if (!node.searches) {
      Say(NodeText(identity));
    } else {
      ++searching;
      compile_ahead += node.offer.compile_ahead();
      measure_slots += std::max(1, node.offer.measure_slots());
    }
  }
  Say(absl::StrCat(searching, " of ", nodes_.size(), " nodes search, ",
                   nodes_[prover_].member.name, " ranks and proves"));
  identities_ = std::move(comparison.nodes);
  offer.set_compile_ahead(compile_ahead);
  offer.set_measure_slots(measure_slots);
  *offer.mutable_nodes() = {identities_.begin(), identities_.end()};
  return offer;
}

absl::Status EvaluatorPool::ProveOn(const std::string& host,
                                    const std::string& device_uuid) {
  for (size_t i = 0; i < identities_.size(); ++i) {
    const proto::MeasuringNode& node = identities_[i];
    if (nodes_[i].reached && node.host() == host &&
        (node.device_uuid().empty() || node.device_uuid() == device_uuid)) {
      prover_ = static_cast<int>(i);
      return absl::OkStatus();
    }
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "none of the ", nodes_.size(), " nodes is ", host,
      device_uuid.empty() ? "" : absl::StrCat(", device ", device_uuid)));
}

int EvaluatorPool::NodeForSearch() const {
  int best = -1;
  double least = 0;
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    const Node& node = nodes_[i];
    if (!node.searches || node.gone) continue;
    const double load =
        static_cast<double>(node.in_flight + 1) /
        (node.offer.compile_ahead() + std::max(1, node.offer.measure_slots()));
    if (best >= 0 && load >= least) continue;
    best = i;
    least = load;
  }
  return best;
}

void EvaluatorPool::SubmitTo(int node, Request request) {
  if (held_.empty()) answered_ns_ = clock_.NowNs();
  if (nodes_[node].in_flight++ == 0) nodes_[node].heard_ns = clock_.NowNs();
  held_[request.ticket()] = {node, request};
  nodes_[node].member.evaluator->Submit(std::move(request));
}

void EvaluatorPool::Submit(Request request) {
  int node = request.purpose() == Request::SEARCH ? NodeForSearch() : prover_;
  if (node < 0) node = prover_;
  SubmitTo(node, std::move(request));
}

void EvaluatorPool::Take(int from, Evaluation answer,
                         std::vector<Evaluation>* answers) {
  const auto found = held_.find(answer.ticket());
  if (found == held_.end() || found->second.node != from) return;
  Held held = std::move(found->second);
  held_.erase(found);
  Node& node = nodes_[from];
  --node.in_flight;
  if (answer.lost() && held.request.purpose() == Request::SEARCH &&
      GiveToAnother(from, std::move(held), answer.trial().detail())) {
    return;
  }
  if (!answer.lost()) {
    node.longest_ns = std::max(node.longest_ns, clock_.NowNs() - node.heard_ns);
  }
  node.heard_ns = clock_.NowNs();
  // Nodes work at the same time, and a part of the time is unpaid once.
  const int64_t now_ns = clock_.NowNs();
  answer.set_unpaid_ns(std::min(answer.unpaid_ns(), now_ns - answered_ns_));
  answered_ns_ = now_ns;
  answers->push_back(std::move(answer));
}

bool EvaluatorPool::GiveToAnother(int from, Held held, const std::string& why) {
  Node& node = nodes_[from];
  const bool was_gone = std::exchange(node.gone, true);
  const int other = NodeForSearch();
  if (other < 0) {
    // The last one is asked again, which may reach it.
    node.gone = was_gone;
    return false;
  }
  if (!was_gone) {
    Say(absl::StrCat("node ", node.member.name,
                     " is left out from now on: ", why));
    lost_.push_back(identities_[from]);
    lost_.back().set_lost_because(why);
  }
  SubmitTo(other, std::move(held.request));
  return true;
}

void EvaluatorPool::LeaveSilentNodes() {
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    Node& node = nodes_[i];
    const int64_t silent_ns = clock_.NowNs() - node.heard_ns;
    if (node.in_flight == 0 ||
        silent_ns < absl::ToInt64Nanoseconds(kPatience) +
                        kPatienceOfLongest * node.longest_ns) {
      continue;
    }
    std::vector<int64_t> tickets;
    for (const auto& [ticket, held] : held_) {
      if (held.node == i && held.request.purpose() == Request::SEARCH) {
        tickets.push_back(ticket);
      }
    }
    for (const int64_t ticket : tickets) {
      Held held = held_[ticket];
      if (!GiveToAnother(i, std::move(held), "it has been silent for long")) {
        break;
      }
      --node.in_flight;
      node.member.evaluator->Cancel(ticket);
    }
  }
}

std::vector<Evaluation> EvaluatorPool::Sweep() {
  std::vector<Evaluation> answers;
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    if (nodes_[i].in_flight == 0) continue;
    for (Evaluation& answer :
         nodes_[i].member.evaluator->Poll(absl::ZeroDuration())) {
      Take(i, std::move(answer), &answers);
    }
  }
  // By the clock: while one node answers, another one may be silent.
  const int64_t now_ns = clock_.NowNs();
  if (now_ns - looked_ns_ >= absl::ToInt64Nanoseconds(kLookForSilence)) {
    looked_ns_ = now_ns;
    LeaveSilentNodes();
  }
  return answers;
}

void EvaluatorPool::Await(const std::vector<int>& nodes,
                          absl::Duration wait) const {
  std::vector<pollfd> polled;
  for (const int i : nodes) {
    const int fd = nodes_[i].member.evaluator->ReadableFd();
    if (fd < 0) {
      wait = std::min(wait, kLookAgain);
    } else {
      polled.push_back({fd, POLLIN, 0});
    }
  }
  const int timeout_ms =
      wait == absl::InfiniteDuration()
          ? -1
          : static_cast<int>(absl::ToInt64Milliseconds(
                std::min(wait + absl::Milliseconds(1), absl::Hours(1))));
  // An interrupted wait is a short one: the caller looks again.
  (void)poll(polled.data(), polled.size(), timeout_ms);
}

std::vector<Evaluation> EvaluatorPool::Poll(absl::Duration wait) {
  std::vector<Evaluation> answers = Sweep();
  bool waited = false;
  while (answers.empty() && !held_.empty() &&
         (!waited || wait == absl::InfiniteDuration())) {
    std::vector<int> busy;
    for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
      if (nodes_[i].in_flight > 0) busy.push_back(i);
    }
    Await(busy, wait == absl::InfiniteDuration() ? kLookForSilence : wait);
    waited = true;
    answers = Sweep();
  }
  return answers;
}

std::vector<proto::MeasuringNode> EvaluatorPool::TakeLostNodes() {
  return std::exchange(lost_, {});
}

bool EvaluatorPool::IsReady() {
  return held_.empty() ||
         std::any_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
           return node.in_flight > 0 && node.member.evaluator->IsReady();
         });
}

void EvaluatorPool::Cancel(int64_t ticket) {
  const auto found = held_.find(ticket);
  if (found == held_.end()) return;
  Node& node = nodes_[found->second.node];
  --node.in_flight;
  held_.erase(found);
  node.member.evaluator->Cancel(ticket);
}

}  // namespace optrail::tuning
