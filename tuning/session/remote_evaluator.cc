#include "tuning/session/remote_evaluator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "tuning/proto/measurement_settings_text.h"

namespace optrail::tuning {
namespace {

// How long the other side may take to say who it is.
constexpr absl::Duration kOpenPatience = absl::Minutes(2);

absl::Status Send(FrameChannel& channel,
                  const google::protobuf::MessageLite& message) {
  return channel.Write(message.SerializeAsString());
}

// Reads a message; nullopt if none comes in time.
template <typename Message>
absl::StatusOr<absl::optional<Message>> Receive(FrameChannel& channel,
                                                absl::Duration wait) {
  if (!channel.WaitReadable(wait)) return absl::optional<Message>();
  OPTRAIL_ASSIGN_OR_RETURN(const std::string frame, channel.Read());
  Message message;
  if (!message.ParseFromString(frame)) {
    return absl::DataLossError("a message that cannot be read");
  }
  return absl::make_optional(std::move(message));
}

proto::EvaluatorRequest ToProto(const Request& request) {
  proto::EvaluatorRequest message;
  proto::EvaluatorRequest::Submit& submit = *message.mutable_submit();
  submit.set_ticket(request.ticket);
  *submit.mutable_config() = request.config;
  submit.set_purpose(static_cast<int>(request.purpose));
  submit.set_round(request.round);
  submit.set_of_round(request.of_round);
  for (const std::string& metric : request.metrics) submit.add_metrics(metric);
  if (request.meter_below_ns) {
    submit.set_meter_below_ns(*request.meter_below_ns);
  }
  if (request.hopeless_above) {
    submit.set_hopeless_above(*request.hopeless_above);
  }
  if (request.expected) submit.set_expected(*request.expected);
  if (request.best) *submit.mutable_best() = *request.best;
  return message;
}

Request FromProto(const proto::EvaluatorRequest::Submit& submit) {
  Request request;
  request.ticket = submit.ticket();
  request.config = submit.config();
  request.purpose = static_cast<Purpose>(submit.purpose());
  request.round = submit.round();
  request.of_round = submit.of_round();
  request.metrics.assign(submit.metrics().begin(), submit.metrics().end());
  if (submit.has_meter_below_ns()) {
    request.meter_below_ns = submit.meter_below_ns();
  }
  if (submit.has_hopeless_above()) {
    request.hopeless_above = submit.hopeless_above();
  }
  if (submit.has_expected()) request.expected = submit.expected();
  if (submit.has_best()) request.best = submit.best();
  return request;
}

}  // namespace

RemoteEvaluator::RemoteEvaluator(std::string name, ConnectFunction connect,
                                 proto::WorkerIdentity expected,
                                 std::function<void(const std::string&)> say,
                                 IfOccupied if_occupied)
    : name_(std::move(name)),
      connect_(std::move(connect)),
      expected_(std::move(expected)),
      say_(std::move(say)),
      if_occupied_(if_occupied) {}

absl::Status RemoteEvaluator::Check(const proto::WorkerIdentity& who) const {
  const auto refuse = [this](absl::string_view what, absl::string_view is,
                             absl::string_view expected) {
    return absl::FailedPreconditionError(
        absl::StrCat("the worker ", name_, " is of another ", what, ": ", is,
                     ", expected ", expected));
  };
  if (!expected_.binary_fingerprint().empty() &&
      who.binary_fingerprint() != expected_.binary_fingerprint()) {
    return refuse("build", who.binary_fingerprint(),
                  expected_.binary_fingerprint());
  }
  const std::string& hardware = expected_.hardware().id().empty()
                                    ? task_.hardware_id()
                                    : expected_.hardware().id();
  if (!hardware.empty() && who.hardware().id() != hardware) {
    return refuse("hardware", who.hardware().id(), hardware);
  }
  for (const std::string& id : expected_.kernel_ids()) {
    if (std::find(who.kernel_ids().begin(), who.kernel_ids().end(), id) ==
        who.kernel_ids().end()) {
      return refuse("set of kernels", "without " + id, id);
    }
  }
  // Limits count, too: they decide about outcomes, and are recorded.
  const std::vector<std::string> is = SettingsTexts(who.settings());
  for (const std::string& expected : SettingsTexts(expected_.settings())) {
    if (std::find(is.begin(), is.end(), expected) != is.end()) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the worker ", name_, " measures differently: expected ",
                     expected, "; it says: ", absl::StrJoin(is, ", ")));
  }
  return absl::OkStatus();
}

absl::StatusOr<Offer> RemoteEvaluator::Connect(IfOccupied if_occupied) {
  absl::StatusOr<std::unique_ptr<FrameChannel>> channel = connect_();
  if (!channel.ok()) {
    // However nobody is reached there: an unknown name, a refused connection.
    return absl::UnavailableError(channel.status().message());
  }
  channel_ = *std::move(channel);
  proto::EvaluatorRequest request;
  *request.mutable_open() = task_;
  const auto closed = [this](const absl::Status& status) {
    channel_.reset();
    return absl::UnavailableError(
        absl::StrCat("the worker ", name_, ": ", status.message()));
  };
  if (const absl::Status sent = Send(*channel_, request); !sent.ok()) {
    return closed(sent);
  }
  auto reply = Receive<proto::EvaluatorReply>(*channel_, kOpenPatience);
  if (reply.ok() && reply->has_value() && (*reply)->has_waiting()) {
    if (if_occupied == IfOccupied::kLose) {
      return closed(absl::UnavailableError(
          "serves another session since the connection broke"));
    }
    if (say_) {
      say_(absl::StrCat("the worker ", name_,
                        " serves one session at a time; waiting for ",
                        (*reply)->waiting().sessions_before(), " before"));
    }
    reply = Receive<proto::EvaluatorReply>(*channel_, absl::InfiniteDuration());
  }
  if (!reply.ok()) return closed(reply.status());
  if (!reply->has_value()) {
    return closed(absl::DeadlineExceededError("does not say who it is"));
  }
  const proto::EvaluatorReply::Opened& opened = (*reply)->opened();
  absl::Status refused = Check(opened.who());
  if (refused.ok() && !opened.refused().empty()) {
    refused = absl::FailedPreconditionError(absl::StrCat(
        "the worker ", name_, " refuses the task: ", opened.refused()));
  }
  if (!refused.ok()) {
    channel_.reset();
    return refused;
  }
  Offer offer;
  offer.compile_ahead = opened.compile_ahead();
  offer.measure_slots = opened.measure_slots();
  offer.begins_ahead = opened.begins_ahead();
  offer.costly_metrics.assign(opened.costly_metrics().begin(),
                              opened.costly_metrics().end());
  proto::MeasuringNode node;
  node.set_name(name_);
  node.set_searches(true);
  node.set_proves(true);
  host_ = opened.who().host();
  node.set_host(host_);
  node.set_hardware_id(opened.who().hardware().id());
  offer.nodes.push_back(std::move(node));
  return offer;
}

absl::StatusOr<Offer> RemoteEvaluator::Open(const proto::Task& task) {
  task_ = task;
  return Connect(IfOccupied::kWait);
}

absl::Status RemoteEvaluator::ProveOn(const std::string& host,
                                      const std::string&) {
  if (host == host_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the worker ", name_, " is ",
      host_.empty() ? "of an unknown host" : host_, ", expected ", host));
}

void RemoteEvaluator::Submit(Request request) {
  in_flight_.insert(request.ticket);
  // What goes wrong here is lost, and Poll says so.
  if (channel_ == nullptr) {
    broken_ = Connect(if_occupied_).status();
    if (!broken_.ok()) return;
  }
  Break(Send(*channel_, ToProto(request)));
}

void RemoteEvaluator::Break(const absl::Status& status) {
  if (status.ok()) return;
  channel_.reset();
  broken_ = absl::Status(status.code(), absl::StrCat("the worker ", name_, ": ",
                                                     status.message()));
}

std::vector<Answer> RemoteEvaluator::Lose() {
  std::vector<Answer> answers;
  for (const int64_t ticket : std::exchange(in_flight_, {})) {
    Answer answer;
    answer.ticket = ticket;
    answer.lost = true;
    answer.trial.set_detail(std::string(broken_.message()));
    answers.push_back(std::move(answer));
  }
  return answers;
}

std::vector<Answer> RemoteEvaluator::Poll(absl::Duration wait) {
  if (in_flight_.empty()) return {};
  if (channel_ == nullptr) return Lose();
  auto reply = Receive<proto::EvaluatorReply>(*channel_, wait);
  if (reply.ok() && reply->has_value() && !(*reply)->has_answer()) {
    reply = absl::DataLossError("a message that is no answer");
  }
  if (!reply.ok()) {
    Break(reply.status());
    return Lose();
  }
  if (!reply->has_value()) return {};
  proto::EvaluatorReply::Answer& stored = *(*reply)->mutable_answer();
  Answer answer;
  answer.ticket = stored.ticket();
  answer.lost = stored.lost();
  answer.unpaid_ns = stored.unpaid_ns();
  answer.trial = std::move(*stored.mutable_trial());
  in_flight_.erase(answer.ticket);
  return {std::move(answer)};
}

void RemoteEvaluator::Cancel(int64_t ticket) {
  in_flight_.erase(ticket);
  if (channel_ == nullptr) return;
  proto::EvaluatorRequest request;
  request.set_cancel(ticket);
  Break(Send(*channel_, request));
}

absl::Status TellToWait(FrameChannel& channel, int sessions_before) {
  proto::EvaluatorReply reply;
  reply.mutable_waiting()->set_sessions_before(sessions_before);
  return Send(channel, reply);
}

absl::Status ServeEvaluator(FrameChannel& channel, Evaluator& evaluator,
                            const proto::WorkerIdentity& who) {
  std::set<int64_t> in_flight;
  while (true) {
    // What has come in is taken before the evaluator works on.
    auto message = Receive<proto::EvaluatorRequest>(
        channel,
        in_flight.empty() ? absl::InfiniteDuration() : absl::ZeroDuration());
    if (absl::IsOutOfRange(message.status())) return absl::OkStatus();
    if (!message.ok()) return message.status();
    if (message->has_value()) {
      const proto::EvaluatorRequest& request = **message;
      switch (request.request_case()) {
        case proto::EvaluatorRequest::kOpen: {
          proto::EvaluatorReply reply;
          proto::EvaluatorReply::Opened& opened = *reply.mutable_opened();
          *opened.mutable_who() = who;
          const absl::StatusOr<Offer> offer = evaluator.Open(request.open());
          if (offer.ok()) {
            opened.set_compile_ahead(offer->compile_ahead);
            opened.set_measure_slots(offer->measure_slots);
            opened.set_begins_ahead(offer->begins_ahead);
            for (const std::string& metric : offer->costly_metrics) {
              opened.add_costly_metrics(metric);
            }
          } else {
            opened.set_refused(std::string(offer.status().message()));
          }
          OPTRAIL_RETURN_IF_ERROR(Send(channel, reply));
          break;
        }
        case proto::EvaluatorRequest::kSubmit:
          in_flight.insert(request.submit().ticket());
          evaluator.Submit(FromProto(request.submit()));
          break;
        case proto::EvaluatorRequest::kCancel:
          in_flight.erase(request.cancel());
          evaluator.Cancel(request.cancel());
          break;
        case proto::EvaluatorRequest::REQUEST_NOT_SET:
          return absl::DataLossError(
              "a request of a kind that this version does not know");
      }
      continue;
    }
    // Not for long, so that what comes in meanwhile (a cancel) is seen.
    for (Answer& answer : evaluator.Poll(absl::Milliseconds(20))) {
      if (in_flight.erase(answer.ticket) == 0) continue;
      proto::EvaluatorReply reply;
      reply.mutable_answer()->set_ticket(answer.ticket);
      reply.mutable_answer()->set_lost(answer.lost);
      reply.mutable_answer()->set_unpaid_ns(answer.unpaid_ns);
      *reply.mutable_answer()->mutable_trial() = std::move(answer.trial);
      OPTRAIL_RETURN_IF_ERROR(Send(channel, reply));
    }
  }
}

}  // namespace optrail::tuning
