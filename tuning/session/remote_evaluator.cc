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
  Offer offer = opened.offer();
  offer.clear_nodes();
  proto::MeasuringNode& node = *offer.add_nodes();
  node.set_name(name_);
  node.set_searches(true);
  node.set_proves(true);
  host_ = opened.who().host();
  node.set_host(host_);
  node.set_hardware_id(opened.who().hardware().id());
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
  in_flight_.insert(request.ticket());
  // What goes wrong here is lost, and Poll says so.
  if (channel_ == nullptr) {
    broken_ = Connect(if_occupied_).status();
    if (!broken_.ok()) return;
  }
  proto::EvaluatorRequest message;
  *message.mutable_submit() = std::move(request);
  Break(Send(*channel_, message));
}

void RemoteEvaluator::Break(const absl::Status& status) {
  if (status.ok()) return;
  channel_.reset();
  broken_ = absl::Status(status.code(), absl::StrCat("the worker ", name_, ": ",
                                                     status.message()));
}

std::vector<Evaluation> RemoteEvaluator::Lose() {
  std::vector<Evaluation> answers;
  for (const int64_t ticket : std::exchange(in_flight_, {})) {
    Evaluation& answer = answers.emplace_back();
    answer.set_ticket(ticket);
    answer.set_lost(true);
    answer.mutable_trial()->set_detail(std::string(broken_.message()));
  }
  return answers;
}

std::vector<Evaluation> RemoteEvaluator::Poll(absl::Duration wait) {
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
  Evaluation& answer = *(*reply)->mutable_answer();
  in_flight_.erase(answer.ticket());
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
            *opened.mutable_offer() = *offer;
          } else {
            opened.set_refused(std::string(offer.status().message()));
          }
          OPTRAIL_RETURN_IF_ERROR(Send(channel, reply));
          break;
        }
        case proto::EvaluatorRequest::kSubmit:
          in_flight.insert(request.submit().ticket());
          evaluator.Submit(request.submit());
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
    for (Evaluation& answer : evaluator.Poll(absl::Milliseconds(20))) {
      if (in_flight.erase(answer.ticket()) == 0) continue;
      proto::EvaluatorReply reply;
      *reply.mutable_answer() = std::move(answer);
      OPTRAIL_RETURN_IF_ERROR(Send(channel, reply));
    }
  }
}

}  // namespace optrail::tuning
