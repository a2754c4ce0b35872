#include "tuning/command/command_slots.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "tuning/proto/canonical.h"

namespace optrail::tuning {
namespace {

Answer AnswerOf(const CommandEvaluator& command, const Request& request) {
  std::map<std::string, std::string> values;
  for (const proto::KnobValue& value : request.config.set()) {
    values[value.knob()] = CanonicalText(value);
  }
  const CommandTrial run = command.Evaluate(values);
  Answer answer;
  answer.ticket = request.ticket;
  proto::Trial& trial = answer.trial;
  *trial.mutable_config() = request.config;
  // The enums mirror each other.
  trial.set_outcome(static_cast<proto::Outcome>(run.outcome));
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

}  // namespace

CommandSlots::CommandSlots(const CommandEvaluator& command, int slots)
    : command_(command), slots_(slots) {
  for (int i = 0; i < slots; ++i) threads_.emplace_back([this] { Work(); });
}

CommandSlots::~CommandSlots() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

absl::StatusOr<Offer> CommandSlots::Open(const proto::Task&) {
  Offer offer;
  offer.measure_slots = slots_;
  return offer;
}

void CommandSlots::Submit(Request request) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back(std::move(request));
  }
  changed_.notify_all();
}

std::vector<Answer> CommandSlots::Poll(absl::Duration wait) {
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

void CommandSlots::Cancel(int64_t ticket) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    if (it->ticket != ticket) continue;
    waiting_.erase(it);
    return;
  }
  cancelled_.push_back(ticket);
}

void CommandSlots::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    const Request request = std::move(waiting_.front());
    waiting_.pop_front();
    running_.push_back(request.ticket);
    lock.unlock();
    Answer answer = AnswerOf(command_, request);
    lock.lock();
    running_.erase(std::find(running_.begin(), running_.end(), request.ticket));
    if (std::find(cancelled_.begin(), cancelled_.end(), request.ticket) ==
        cancelled_.end()) {
      answers_.push_back(std::move(answer));
    }
    changed_.notify_all();
  }
}

}  // namespace optrail::tuning
